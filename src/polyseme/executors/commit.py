"""Do one shard's work and commit it: afterwards it is there whole, with a receipt, or not at all.

The function writes into a scratch folder. Its files are made durable, hashed and moved to
their final names; the receipt, written last, is the commit. A death at any moment leaves
either no receipt (the shard is done again) or a complete shard.

In a store (`storage/store.py`) there is no rename: objects are put under names that carry their
hashes, and the record of a shard, created last under a name that carries its key, is the commit.

To find out what is done, the process that started the run reads each record once and no data: a
file here is known by its size, its time and its inode, one in a store by its name and size. Only
where these differ, as in a folder that was copied, a worker compares what is there with the hashes.

Scratch folders live under `.work/<run>`. A new run takes away those of the runs before it, and
with them from any survivor of a killed run, perhaps on another machine, the means to publish
anything: a late rename finds nothing to rename.
"""

import contextlib
import hashlib
import json
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from polyseme.errors import ExecutorError, PolysemeError
from polyseme.limits import JSON_BYTES, parse_json, read_text
from polyseme.storage.files import (
    WORK,
    canonical_json,
    describe_file,
    is_as_written,
    publish,
    stamp_of,
    write_text,
)
from polyseme.storage.folders import check_shape, listed_files
from polyseme.storage.parquet import rows_of_groups
from polyseme.storage.remote_folders import object_name, put_file, scratch_space
from polyseme.storage.store import Listing, Store, in_parallel

Report = Callable[[int], None]
"""Called by the work on a shard: so much more of `shard.size` is done."""


RECEIPTS = "receipts"
# A shard whose worker has died this often is taken to be the cause. Generous, because a machine
# that is short of memory may kill any worker.
MAX_RETRIES = 12
# Stands in each scratch folder from its beginning. A folder without it was not made here: the
# scratch folder was taken away and the work, making its own folders, has made it again.
_MARK = "mark"
_TOGETHER = 1_000  # records of a store that are read before the next ones


class ShardInput(Protocol):
    """What one shard is made from. Must be picklable: it travels to the worker."""

    @property
    def name(self) -> str:
        """The shard's name, for example `part-00017`; unique within the job."""

    @property
    def size(self) -> int:
        """How much work it is, in any one unit; progress is counted in it."""

    def digest(self) -> str:
        """Hash of everything it is made from, as that is now. Called where the work is done."""

    def identity(self) -> str:
        """The same, of its files by their sizes, times and inodes: nothing of them is read."""

    def staged(self, folder: Path) -> "ShardInput":
        """The same with its files on this machine: itself, or what was fetched into a folder."""


Done = tuple[dict[str, Any], str]
"""What the work on a shard returns: counts, and the digest of what it has read."""


@dataclass(frozen=True)
class ShardJob:
    """The function to run over all inputs, and what its results depend on besides the input."""

    work: Callable[[Any, Path, Report], Done]
    """Writes files below the given folder, under their final relative names."""
    fingerprint: str
    """Settings, tools and format: changes whenever the same input could give another output."""
    folders: tuple[str, ...] = ()
    """Folders in the output that are this job's alone: shards that no receipt names are removed."""
    per_worker: tuple[Callable[[Any, Path, Report], Done], ...] = ()
    """The same work on one GPU each, for workers on this machine to share out."""
    num_gpus: int = 0
    """GPUs that a task on a cluster needs."""
    publish: Callable[[Path, Path], None] = publish
    """Moves a finished file to its final name, atomically."""


@dataclass(frozen=True)
class Receipt:
    """Proof that a shard is complete: what it was made from and what came out."""

    name: str
    key: str
    input: str
    files: dict[str, dict[str, Any]]
    """Relative name -> bytes and sha256."""
    counts: dict[str, Any]
    stamp: str = ""
    """Hash of its input's identity and of the sizes, times and inodes of its files, in a folder."""
    was_there: bool = False
    """Whether an earlier run had done it; not written down."""


def for_worker(job: ShardJob, number: int) -> ShardJob:
    """The job of the so-manieth worker on this machine."""
    if not job.per_worker:
        return job
    return replace(job, work=job.per_worker[number % len(job.per_worker)], per_worker=())


Target = Path | Store
"""Where shards go: a folder that all workers see, or a store."""


def commit(
    job: ShardJob, shard: ShardInput, target: Target, run: str, report: Report = lambda _: None
) -> Receipt:
    """Make sure this shard is where it belongs."""
    if isinstance(target, Path):
        return commit_shard(job, shard, target, run, report)
    return commit_to_store(job, shard, target, report)


def commit_shard(
    job: ShardJob, shard: ShardInput, folder: Path, run: str, report: Report = lambda _: None
) -> Receipt:
    """Make sure this shard is in `folder`, doing its work only if it is not there already.

    Its input may be large, and far away: it is read once, to be compared with that of the receipt,
    or else by the work, which hashes what it reads.
    """
    found = read_receipt(folder, shard.name)
    if (
        found is not None
        and found.key == _key(job, found.input)
        and all(is_as_written(folder / name, each) for name, each in found.files.items())
        and shard.digest() == found.input
    ):
        stamped = replace(found, stamp=_stamp(shard.identity(), found.files, folder))
        write_text(_receipt_path(folder, shard.name), _sealed(stamped), work=folder / WORK / run)
        return replace(stamped, was_there=True)
    identity = shard.identity()
    scratch = _open_scratch(folder, run, shard.name)
    unfinished = scratch / "files"
    try:
        counts, digest = _worked(job, shard, scratch, Throttled(report))
        if not (scratch / _MARK).exists():
            raise ExecutorError(_taken_over(folder))
        files = _described_below(unfinished)
        for name in files:
            job.publish(unfinished / name, folder / name)
        stamp = _stamp(identity, files, folder)
        receipt = Receipt(shard.name, _key(job, digest), digest, files, counts, stamp)
        write_text(_receipt_path(folder, shard.name), _sealed(receipt), work=scratch)
    except FileNotFoundError as error:
        if (scratch / _MARK).exists():
            raise
        raise ExecutorError(_taken_over(folder)) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return receipt


def _worked(job: ShardJob, shard: ShardInput, scratch: Path, report: Report) -> Done:
    """Do the work of a shard below a scratch folder, on input that nobody changes meanwhile."""
    staged = shard.staged(scratch / "input")
    before = staged.identity()
    counts, digest = job.work(staged, scratch / "files", report)
    if staged.identity() != before:
        raise ExecutorError(
            f"The input of {shard.name} changed while it was being read. "
            "Let nothing write to it, then run the same command again."
        )
    # As they will be read: all keys are text. What was fetched is known by its object, not by what
    # was read of it.
    return json.loads(canonical_json(counts)), digest if staged is shard else shard.digest()


def _described_below(folder: Path) -> dict[str, dict[str, Any]]:
    files = {}
    for path in filter(Path.is_file, sorted(folder.rglob("*"))):
        name = path.relative_to(folder).as_posix()
        files[name] = describe_file(path)
        if path.suffix == ".parquet":
            files[name]["rows"] = rows_of_groups(path)
    return files


def commit_to_store(job: ShardJob, shard: ShardInput, store: Store, report: Report) -> Receipt:
    """Do a shard's work, put its files, then create its record.

    Whoever creates the record first has done the shard. A late one's files have other names or are
    the same to the byte, so they harm nothing.
    """
    with scratch_space() as scratch:
        (scratch / "files").mkdir()
        counts, digest = _worked(job, shard, scratch, Throttled(report))
        files = _described_below(scratch / "files")
        receipt = Receipt(shard.name, _key(job, digest), digest, files, counts)
        for name, described in files.items():
            put_file(store, scratch / "files" / name, name, described["sha256"])
    name = _record_name(receipt.name, receipt.key)
    if store.create(name, _sealed(receipt).encode("utf-8")):
        return receipt
    found = store.read(name)
    first = found and _unsealed(found[0].decode("utf-8"), shard.name)
    if not first:
        raise ExecutorError(
            f"{store.url}/{name} is there and damaged. Remove it, then run the same command again."
        )
    return first


def _record_name(name: str, key: str) -> str:
    return f"{RECEIPTS}/{name}-{key[:16]}.json"


def finished(
    job: ShardJob, inputs: Sequence[ShardInput], target: Target
) -> Iterator[tuple[ShardInput, Receipt | None]]:
    """Each shard with its receipt if it is seen to be done, without a byte of data being read."""
    if isinstance(target, Path):
        for shard in inputs:
            yield shard, _finished_here(job, shard, target)
    else:
        yield from _finished_in_store(job, inputs, target)


def _finished_here(job: ShardJob, shard: ShardInput, folder: Path) -> Receipt | None:
    found = read_receipt(folder, shard.name)
    if found is None or found.key != _key(job, found.input):
        return None
    with contextlib.suppress(OSError):  # a file is gone: a worker will say of which kind
        if found.stamp == _stamp(shard.identity(), found.files, folder):
            return replace(found, was_there=True)
    return None


def _stamp(identity: str, files: Iterable[str], folder: Path) -> str:
    stamps = [identity, *(str(stamp_of(folder / name)) for name in files)]
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


def _finished_in_store(
    job: ShardJob, inputs: Sequence[ShardInput], store: Store
) -> Iterator[tuple[ShardInput, Receipt | None]]:
    """By a listing and the records: an object whose name carries a hash is what it was when it was
    put. A record whose files are not all there is removed, and its shard done again."""
    there = Listing(store.list())
    damaged = []
    for begin in range(0, len(inputs), _TOGETHER):
        some = inputs[begin : begin + _TOGETHER]
        keys = [_key(job, shard.digest()) for shard in some]
        names = [_record_name(shard.name, key) for shard, key in zip(some, keys, strict=True)]
        known = [name for name in names if there.size(name) is not None]
        contents = dict(zip(known, in_parallel(store.read, known), strict=True))
        for shard, key, name in zip(some, keys, names, strict=True):
            content = contents.get(name)
            found = content and _unsealed(content[0].decode("utf-8", "replace"), shard.name)
            if not found:
                damaged += [name] if content else []
                yield shard, None
            elif found.key == key and all(
                there.size(object_name(file, each["sha256"])) == each["bytes"]
                for file, each in found.files.items()
            ):
                yield shard, replace(found, was_there=True)
            else:
                damaged.append(name)
                yield shard, None
    store.delete(damaged)


def _key(job: ShardJob, digest: str) -> str:
    return hashlib.sha256(f"{job.fingerprint}\n{digest}".encode()).hexdigest()


def read_receipt(folder: Path, name: str) -> Receipt | None:
    """The receipt of a shard, or None if there is none or any of its bytes is not as written."""
    try:
        text = read_text(_receipt_path(folder, name), JSON_BYTES)
    except (OSError, ValueError):
        return None  # damaged counts as missing: the shard is done again
    return _unsealed(text, name)


def _unsealed(text: str, name: str) -> Receipt | None:
    try:
        values = parse_json(text)["receipt"]
        listed_files(values)
        check_shape(values["counts"], dict[str, Any])
        receipt = Receipt(**values)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return receipt if receipt.name == name and _sealed(receipt) == text else None


def _receipt_path(folder: Path, name: str) -> Path:
    return folder / RECEIPTS / f"{name}.json"


def _sealed(receipt: Receipt) -> str:
    """The receipt as text, with a hash of itself: no file vouches for its counts and its input."""
    return _seal({name: each for name, each in vars(receipt).items() if name != "was_there"})


def _seal(values: dict[str, Any]) -> str:
    # On one line, which the encoder writes ten times as fast.
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    seal = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"seal":"{seal}","receipt":{text}}}\n'


class Throttled:
    """Tells how much is done, but no more than twice a second."""

    def __init__(self, tell: Report) -> None:
        self._tell, self._done, self._told = tell, 0, time.monotonic()

    def __call__(self, amount: int) -> None:
        """So much more is done."""
        self._done += amount
        now = time.monotonic()
        if now - self._told >= 0.5:
            self._tell(self._done)
            self._done, self._told = 0, now


def portable(error: Exception, shard: ShardInput) -> Exception:
    """The error of a worker as its parent will see it: itself, or its text if it cannot travel."""
    if isinstance(error, MemoryError):  # Arrow has its own kind
        error = MemoryError(str(error)).with_traceback(error.__traceback__)
    # Others' errors may want more than their text when they are built again.
    if not isinstance(error, PolysemeError) and type(error).__module__ != "builtins":
        text = f"The work on {shard.name} failed. {type(error).__name__}: {error}"
        error = ExecutorError(text).with_traceback(error.__traceback__)
    error.add_note(f"In a worker, on {shard.name}:\n{traceback.format_exc()}")
    return error


def _open_scratch(folder: Path, run: str, name: str) -> Path:
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder / WORK / run))
        (scratch / _MARK).touch()
        (scratch / "files").mkdir()
    except FileNotFoundError as error:
        raise ExecutorError(_taken_over(folder)) from error
    return scratch


def _taken_over(folder: Path) -> str:
    return (
        f"The work folder of this run below {folder} is gone. Either another run has taken over "
        "the output folder, or this worker runs on a machine that does not see it: with Ray, the "
        "inputs and the output must lie on a file system that all nodes share."
    )
