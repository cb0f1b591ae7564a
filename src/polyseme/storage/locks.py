"""One writer at a time: a lock on an output folder, or on a single file that is being made.

The kernel holds it for as long as the process lives, so a killed run keeps nobody out.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from polyseme.errors import ExecutorError
from polyseme.storage.files import WORK, own_folder

_LOCK = ".lock"


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep every other run out of a folder. May be held around `run_job`, which holds it too."""
    with _held(
        folder / _LOCK,
        f"Another run is writing to {folder}. Wait for it, or choose another --out.",
    ):
        yield


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
        with contextlib.suppress(OSError):  # not empty: others have work in it
            work.rmdir()


@contextlib.contextmanager
def _held(path: Path, refusal: str, wait: float = 0) -> Iterator[None]:
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


def _acquire(lock: FileLock, path: Path, refusal: str, wait: float) -> None:
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
