"""Do one shard's work and commit it: afterwards it is there whole, with a receipt, or not at all.

The function writes into a scratch folder. Its files are made durable, hashed and moved to
their final names; the receipt, written last, is the commit. A death at any moment leaves
either no receipt (the shard is done again) or a complete shard.

Scratch folders live under `.work/<run>`. A new run takes away those of the runs before it, and
with them from any survivor of a killed run, perhaps on another machine, the means to publish
anything: a late rename finds nothing to rename.
"""

import hashlib
import json
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from polyseme.errors import ExecutorError, PolysemeError
from polyseme.limits import JSON_BYTES, parse_json, read_text
from polyseme.storage.files import (
    WORK,
    canonical_json,
    publish,
    sha256_of,
    write_text,
)
from polyseme.storage.folders import listed_files
from polyseme.storage.shapes import check_shape

Report = Callable[[int], None]
"""Called by the work on a shard: so much more of `shard.size` is done."""


RECEIPTS = "receipts"
# A shard whose worker has died this often is taken to be the cause. Generous, because a machine
# that is short of memory may kill any worker.
MAX_RETRIES = 12
# Stands in each scratch folder from its beginning. A folder without it was not made here: the
# scratch folder was taken away and the work, making its own folders, has made it again.
_MARK = "mark"


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

    def stamp(self) -> object:
        """What changes when someone writes to its files; reads nothing of them."""


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
    was_there: bool = False
    """Whether an earlier run had done it; not written down."""


def for_worker(job: ShardJob, number: int) -> ShardJob:
    """The job of the so-manieth worker on this machine."""
    if not job.per_worker:
        return job
    return replace(job, work=job.per_worker[number % len(job.per_worker)], per_worker=())


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
        and _is_intact(found, folder)
        and shard.digest() == found.input
    ):
        return replace(found, was_there=True)
    scratch = _open_scratch(folder, run, shard.name)
    unfinished = scratch / "files"
    try:
        before = shard.stamp()
        counts, digest = job.work(shard, unfinished, Throttled(report))
        if shard.stamp() != before:
            raise ExecutorError(
                f"The input of {shard.name} changed while it was being read. "
                "Let nothing write to it, then run the same command again."
            )
        if not (scratch / _MARK).exists():
            raise ExecutorError(_taken_over(folder))
        files = {}
        for path in _files_below(unfinished):
            name = path.relative_to(unfinished).as_posix()
            files[name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for name in files:
            job.publish(unfinished / name, folder / name)
        counts = json.loads(canonical_json(counts))  # as it will be read: all keys are text
        receipt = Receipt(shard.name, _key(job, digest), digest, files, counts)
        final = folder / RECEIPTS / f"{shard.name}.json"
        write_text(final, _sealed(receipt), work=scratch)
    except FileNotFoundError as error:
        if (scratch / _MARK).exists():
            raise
        raise ExecutorError(_taken_over(folder)) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return receipt


def _key(job: ShardJob, digest: str) -> str:
    return hashlib.sha256(f"{job.fingerprint}\n{digest}".encode()).hexdigest()


def read_receipt(folder: Path, name: str) -> Receipt | None:
    """The receipt of a shard, or None if there is none or any of its bytes is not as written."""
    try:
        text = read_text(folder / RECEIPTS / f"{name}.json", JSON_BYTES)
        values = parse_json(text)
        del values["seal"]
        listed_files(values)
        check_shape(values["counts"], dict[str, Any])
        receipt = Receipt(**values)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None  # damaged counts as missing: the shard is done again
    return receipt if receipt.name == name and _sealed(receipt) == text else None


def _sealed(receipt: Receipt) -> str:
    """The receipt as text, with a hash of itself: no file vouches for its counts and its input."""
    values = asdict(receipt)
    del values["was_there"]
    seal = hashlib.sha256(canonical_json(values).encode()).hexdigest()
    return canonical_json({**values, "seal": seal})


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


def _is_intact(receipt: Receipt, folder: Path) -> bool:
    """Are the receipt's files there, byte for byte?"""
    for name, info in receipt.files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != info["bytes"]:
            return False
        if sha256_of(path) != info["sha256"]:
            return False
    return True


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


def _files_below(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
