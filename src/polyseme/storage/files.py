"""Files that are either absent or complete: hashing, durable writes, atomic publication, locks.

Every file the program leaves under a final name is written as a scratch file (`scratch_for`) and
gets its name through `publish`. That is the one place to change when the final place is an object
store, where a put takes the rename's part.

A link or a hard link under a final name is replaced, and what it leads to left alone: nothing is
written in place. A folder that we make must not be a link (`own_folder`), since files are written
and removed in it; those that hold the bulk of the data may be, to another disk (`is_linked`).

A scratch file's name is like no other and names the process that made it (`new_name`): whoever
works in the same folder later can tell what a dead process has left from what a living one is
writing. One process at a time writes to a folder or makes a file (`hold_folder`, `hold_file`): the
kernel holds the lock for as long as the process lives, so a killed run keeps nobody out.
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import ExecutorError, PolysemeError, StorageError
from polyseme.limits import open_regular

if TYPE_CHECKING:  # where a wheel is built, kernels are published before any dependency is there
    from filelock import FileLock

WORK = ".work"
"""Folder for what is unfinished, inside the one it is meant for; the next run removes it."""
_CHUNK = 1 << 20
_DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG}
# Something stands under a name of ours that is of another kind: a folder for a file, say.
_WRONG_KINDS = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENOTEMPTY}


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class ReadingHash:
    """SHA-256 of ranges of a file, from its bytes as they are being read for another purpose.

    What was not read, or not in order, is read at the end: the hash is right whatever the reader
    does, and a file that is read from beginning to end is read once.
    """

    def __init__(self, path: Path, ranges: Sequence[tuple[int, int]]) -> None:
        self._path = path
        self._ranges = [_HashedRange(start, stop) for start, stop in ranges]
        self._awaited = {each.place: each for each in self._ranges if each.place < each.stop}

    def take(self, offset: int, data: bytes) -> None:
        """Note that these bytes stand at `offset`."""
        while data and (found := self._awaited.pop(offset, None)):
            found.add(data[: found.stop - offset])
            data = data[found.place - offset :]
            offset = found.place
            if offset < found.stop:
                self._awaited[offset] = found

    def hexdigest(self) -> str:
        """Of a single range its SHA-256; of several, a hash of theirs."""
        unread = [each for each in self._ranges if each.place < each.stop]
        if unread:
            with open_regular(self._path) as stream:
                for each in unread:
                    stream.seek(each.place)
                    while chunk := stream.read(min(_CHUNK, each.stop - each.place)):
                        each.add(chunk)
        digests = [each.hash.hexdigest() for each in self._ranges]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest()


class _HashedRange:
    """A range of a file, hashed up to `place`."""

    def __init__(self, start: int, stop: int) -> None:
        self.place, self.stop = start, stop
        self.hash = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.hash.update(data)
        self.place += len(data)


def stamp_of(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written to or replaced; nothing of it is read."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def describe_file(path: Path) -> dict[str, Any]:
    """What a manifest has of a file: its size and its SHA-256."""
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def describe_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The same of several files of a folder, by name."""
    return {name: describe_file(folder / name) for name in names}


def is_as_written(path: Path, described: Mapping[str, Any]) -> bool:
    """Whether a file is there and is, byte for byte, what a manifest describes."""
    return path.is_file() and sha256_of(path) == described["sha256"]


def canonical_json(value: Any) -> str:
    """JSON that is the same text for the same value, so that it can be hashed and compared.

    What UTF-8 cannot hold, as a file name's stray bytes, is escaped: `\\udcff`.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def publish(scratch: Path, final: Path) -> None:
    """Move a finished file to its final name: durable first, then visible, in one step."""
    flush_to_disk(scratch)
    _make_folder(final.parent)
    try:
        scratch.replace(final)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with scratch_for(final) as near:  # the folder is a link to another disk
            shutil.copyfile(scratch, near)
            scratch.unlink()  # if it is gone, another run has taken over: nothing is published
    _flush_folder(final.parent)


def publish_folder(scratch: Path, final: Path) -> None:
    """Move a finished folder of files to its final name: durable first, then visible at once."""
    for path in sorted(scratch.rglob("*")):
        (_flush_folder if path.is_dir() else flush_to_disk)(path)
    _flush_folder(scratch)
    _make_folder(final.parent)
    scratch.rename(final)
    _flush_folder(final.parent)


@contextlib.contextmanager
def scratch_for(final: Path, *, work: Path | None = None) -> Iterator[Path]:
    """An empty file to write what becomes `final` if nothing fails; otherwise nothing is left.

    It lies in a `WORK` folder beside `final`, or in `work`, which is then the caller's.
    """
    folder = final.parent / WORK if work is None else work
    if work is None:
        scratch = _begin(folder, lambda path: path.touch(exist_ok=False), final.suffix)
    else:
        scratch = folder / new_name(final.suffix)
    try:
        yield scratch
        publish(scratch, final)
    finally:
        scratch.unlink(missing_ok=True)
        if work is None:
            _end(folder)


@contextlib.contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """A new folder in the `WORK` folder of another one, for as long as it is needed."""
    scratch = _begin(beside / WORK, Path.mkdir)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        _end(beside / WORK)


def write_text(final: Path, text: str, *, work: Path | None = None) -> None:
    """Write a small text file atomically; `work` as in `scratch_for`."""
    with scratch_for(final, work=work) as scratch:
        # Bytes: no newline translation on Windows. A stray byte of a name is no reason to stop.
        scratch.write_bytes(text.encode("utf-8", errors="backslashreplace"))


def own_folder(folder: Path) -> Path:
    """Make a folder that files are written and removed in, or refuse a link in its place."""
    refuse_link(folder)
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        except FileExistsError:
            # It was there, and another process has removed it before `mkdir` looked what it is. One
            # look, not two: between them it could come and go again.
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISDIR(folder.lstat().st_mode):
                    raise


def refuse_link(folder: Path) -> None:
    """Refuse a link where a folder of ours is, or will be."""
    if folder.is_symlink():
        raise StorageError(
            f"{folder} is a link to {folder.readlink()}, and Polyseme writes and removes files in "
            "it. Remove the link, or choose another folder to write to."
        )


def is_linked(folder: Path) -> bool:
    """Whether a folder is a link to one elsewhere. A link that leads to no folder is refused."""
    if not folder.is_symlink():
        return False
    if not folder.is_dir():
        raise StorageError(
            f"{folder} is a link to {folder.readlink()}, which is not a folder. Make that folder, "
            "or remove the link."
        )
    return True


def clear_work(work: Path) -> None:
    """Remove a work folder, though survivors of an earlier run may be writing in it."""
    if not os.path.lexists(work):
        return
    # Renamed first, in one step: a survivor could fill a folder as fast as it is being emptied.
    for path in own_folder(work).glob("*"):
        with contextlib.suppress(OSError):
            path.rename(work / f"over-{uuid.uuid4().hex}")
    shutil.rmtree(work, ignore_errors=True)


def copy_file(source: Path, final: Path) -> None:
    """Copy a file of any size; the copy appears whole or not at all."""
    with scratch_for(final) as scratch:
        shutil.copyfile(source, scratch)


def flush_to_disk(path: Path) -> None:
    """Return only when the file's bytes are on the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def make_output(folder: Path) -> None:
    """Make the folder that a command writes to."""
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder} is a file; --out names a folder to write to.")
    folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def disk_faults_explained(folder: Path) -> Iterator[None]:
    """Turn a full or failing disk into a StorageError that says what is safe and what to do."""
    try:
        yield
    except Exception as error:
        fault = _disk_fault(error)
        if fault is None:
            raise
        if fault in _WRONG_KINDS:
            name = getattr(error, "filename2", None) or getattr(error, "filename", None) or folder
            raise StorageError(
                f"{name}: {os.strerror(fault)}. Polyseme "
                "keeps something else under this name. Move it away, or choose another folder to "
                "write to."
            ) from error
        raise StorageError(
            f"Writing to {folder} failed: {os.strerror(fault)}. Finished work is complete "
            "and safe; nothing half-written is visible. Free some space (or repair the disk) and "
            "run the same command again: it continues with what is missing."
        ) from error


def _disk_fault(error: Exception) -> int | None:
    """The number of the disk's fault, if it is one. DuckDB has it in words only."""
    if isinstance(error, OSError):
        return error.errno if error.errno in _DISK_FAULTS | _WRONG_KINDS else None
    if isinstance(error, PolysemeError):
        return None
    if "max_temp_directory_size" in str(error):
        return errno.ENOSPC  # it measures the free space first and then refuses to exceed it
    return next((number for number in _DISK_FAULTS if os.strerror(number) in str(error)), None)


def _begin(work: Path, make: Callable[[Path], None], suffix: str = "") -> Path:
    """Make something new in a work folder; what dead processes left there goes."""
    while True:
        own_folder(work)
        scratch = work / new_name(suffix)
        # Another process, done with its own, may be removing the folder just now: then once more.
        with contextlib.suppress(FileNotFoundError):
            for path in work.iterdir():
                if is_abandoned(path.name):
                    _remove(path)
            make(scratch)
            return scratch


def _end(work: Path) -> None:
    with contextlib.suppress(OSError):  # not empty: others have work in it
        work.rmdir()


def _remove(path: Path) -> None:
    """Remove a file, a link (not what it leads to) or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    """Make a folder whose name lasts; otherwise a power cut could take it, and all in it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_folder(folder.parent)


def _flush_folder(folder: Path) -> None:
    """Make a rename durable. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_NAME = re.compile(r"(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]{1,9})-[0-9a-f]{12}(\..*)?")


def new_name(suffix: str = "") -> str:
    """A name that no other call gives, here or on any machine; libraries may need the suffix."""
    return f"{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:12]}{suffix[:16]}"


def is_abandoned(name: str) -> bool:
    """Whether it is the name of a process of this machine that is no more."""
    found = _NAME.fullmatch(name)
    if found is None or found["machine"] != _machine() or os.name == "nt":
        return False
    try:
        os.kill(int(found["process"]), 0)  # asks whether it is there, and does nothing to it
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


@functools.cache
def _machine() -> str:
    """Where process numbers mean the same: this machine, or this container on it."""
    numbering = Path("/proc/self/ns/pid")
    identity = f"{platform.node()} {numbering.stat().st_ino if numbering.exists() else 0}"
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


_LOCK = ".lock"


def hold_folder(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Keep every other run out of a folder. May be held around `run_job`, which holds it too."""
    refusal = f"Another run is writing to {folder}. Wait for it, or choose another --out."
    return _held(folder / _LOCK, refusal)


@contextlib.contextmanager
def hold_file(final: Path, *, wait: float = 0) -> Iterator[None]:
    """Keep every other process, and thread, from making the same file.

    `wait`: seconds that another may still take.
    """
    work = final.parent / WORK
    name = hashlib.sha256(final.name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    refusal = f"Another process is writing {final}. Wait for it, or choose another --out."
    try:
        with _held(work / f"{name}{_LOCK}", refusal, wait):
            yield
    finally:
        _end(work)


@contextlib.contextmanager
def _held(path: Path, refusal: str, wait: float = 0) -> Iterator[None]:
    from filelock import FileLock

    lock = FileLock(path, is_singleton=True)  # one lock for one path, so that it can be held twice
    is_outermost = not lock.is_locked
    _acquire(lock, path, refusal, wait)
    try:
        yield
    finally:
        # Removed while still held: a moment later the name may be another run's lock. Windows
        # removes it by itself.
        try:
            if is_outermost and os.name != "nt":
                path.unlink(missing_ok=True)
        finally:
            lock.release()


def _acquire(lock: "FileLock", path: Path, refusal: str, wait: float) -> None:
    from filelock import Timeout

    is_in_work = path.parent.name == WORK
    while True:
        if is_in_work:
            own_folder(path.parent)
        _check_lock_file(path)
        try:
            lock.acquire(timeout=wait)
        except Timeout as error:
            raise ExecutorError(refusal) from error
        except (FileNotFoundError, FileExistsError):
            # Another process, done with its own work, has just removed the folder; the second, if
            # the lock's own `mkdir` was at it. What is no folder `own_folder` refuses.
            if is_in_work:
                continue
            raise
        return


def _check_lock_file(path: Path) -> None:
    """Refuse what is no lock of ours: opening it would reach another file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_size:
        raise ExecutorError(
            f"{path} is a link, or holds something; Polyseme keeps an empty file there while it "
            "writes. Move it away, or choose another --out."
        )
