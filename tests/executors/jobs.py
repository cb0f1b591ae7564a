"""Shards and work for the tests of executors. At the top of a module: workers must import them."""

import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from polyseme.executors import Done, Receipt, Report, ShardJob
from polyseme.executors.commit import _sealed, read_receipt
from polyseme.storage.files import sha256_of, stamp_of


@dataclass(frozen=True)
class FileShard:
    """A shard made from one whole file."""

    name: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def digest(self) -> str:
        return sha256_of(self.path)

    def identity(self) -> str:
        return str(stamp_of(self.path))

    def staged(self, _folder: Path) -> "FileShard":
        return self


class AwkwardError(Exception):
    """Cannot be rebuilt in another process: its constructor wants more than its text."""

    def __init__(self, message: str, *, place: int) -> None:
        super().__init__(message)
        self.place = place


def make_inputs(folder: Path, number: int) -> list[FileShard]:
    folder.mkdir(parents=True, exist_ok=True)
    shards = []
    for i in range(number):
        path = folder / f"{i}.txt"
        path.write_text(f"text number {i}\n" * 10)
        shards.append(FileShard(f"part-{i:05d}", path))
    return shards


def capitals(shard: FileShard, folder: Path, report: Report) -> Done:
    """Two files of each shard, the second only if there is a reason for it."""
    text = shard.path.read_text()
    (folder / "upper").mkdir()
    (folder / "upper" / f"{shard.name}.txt").write_text(text.upper())
    if "odd" in text:
        (folder / "odd").mkdir()
        (folder / "odd" / f"{shard.name}.txt").write_text("odd")
    return {"letters": len(text), "by_length": {10: 1, 9: 2}}, shard.digest()


def capitals_noting_calls(calls: Path, shard: FileShard, folder: Path, report: Report) -> Done:
    """`capitals`, leaving a trace of each call beside the corpus."""
    with (calls / shard.name).open("a") as trace:
        trace.write("x")
    return capitals(shard, folder, report)


def fail(shard: FileShard, folder: Path, report: Report) -> Done:
    if shard.name == "part-00001":
        raise ValueError(f"{shard.name} is not to my taste")
    return capitals(shard, folder, report)


def fail_awkwardly(shard: FileShard, folder: Path, report: Report) -> Done:
    raise AwkwardError(f"{shard.name} is awkward", place=3)


def die(shard: FileShard, folder: Path, report: Report) -> Done:
    if shard.name == "part-00001":
        os.kill(os.getpid(), signal.SIGKILL)
    return capitals(shard, folder, report)


def note_process(traces: Path, shard: FileShard, folder: Path, report: Report) -> Done:
    """`capitals`, noting in which process."""
    (traces / str(os.getpid())).touch()
    return capitals(shard, folder, report)


def die_once(traces: Path, shard: FileShard, folder: Path, report: Report) -> Done:
    with contextlib.suppress(FileExistsError):
        (traces / shard.name).touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    return capitals(shard, folder, report)


def fill_disk(number: int, shard: FileShard, folder: Path, report: Report) -> Done:
    raise OSError(number, os.strerror(number))


def grow_input(shard: FileShard, folder: Path, report: Report) -> Done:
    with shard.path.open("a") as stream:
        stream.write("one line more\n")
    return capitals(shard, folder, report)


def capitals_slowly(seconds: float, shard: FileShard, folder: Path, report: Report) -> Done:
    time.sleep(seconds)
    return capitals(shard, folder, report)


def capitals_job(fingerprint: str = "settings") -> ShardJob:
    return ShardJob(capitals, fingerprint, folders=("upper", "odd"))


def noting_job(calls: Path, fingerprint: str = "settings") -> ShardJob:
    calls.mkdir(exist_ok=True)
    work = partial(capitals_noting_calls, calls)
    return ShardJob(work, fingerprint, folders=("upper", "odd"))


def calls_made(calls: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(calls.iterdir())}


def hashes(folder: Path) -> dict[str, str]:
    """Every file below a folder with its SHA-256; of receipts, without what is of this machine."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): _hash_of(path) for path in paths}


def _hash_of(path: Path) -> str:
    if path.parent.name == "receipts" and (found := read_receipt(path.parents[1], path.stem)):
        return hashlib.sha256(_sealed(replace(found, stamp="")).encode()).hexdigest()
    return sha256_of(path)


def report_half_and_wait(shard: FileShard, folder: Path, report: Report) -> Done:
    """Half the work, then long enough for someone to look."""
    report(0)
    time.sleep(0.6)
    report(shard.size // 2)
    time.sleep(1.2)
    return capitals(shard, folder, report)


def forge_receipt(name: str, files: Iterable[str], sha256: str = "0" * 64) -> str:
    """A receipt with a right seal that names any files: there is no secret in a seal."""
    told = {each: {"bytes": 1, "sha256": sha256} for each in files}
    return _sealed(Receipt(name, "0" * 64, "0" * 64, told, {}))


def name_card(card: str, shard: FileShard, folder: Path, report: Report) -> Done:
    (folder / "cards").mkdir()
    (folder / "cards" / shard.name).write_text(card)
    return {}, shard.digest()
