"""A process that dies at its n-th change of a folder, without a process of its own.

Python tells of every call that changes a file system (`sys.addaudithook`). From the chosen one on,
each is refused, so that no `finally` can tidy up, just as after `kill -9`. Names of unfinished
files tell the process that made them, so a dead one's number is put there.
"""

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from polyseme.storage.files import new_name

_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link"}


class DiedError(BaseException):
    """Not an Exception: nothing may handle it."""


class Death:
    """Counts the changes below a folder; with `at`, the one of that number is the last."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.at: int | None = None
        self.seen = 0
        sys.addaudithook(self._look)  # stays for good, so there is only one

    @contextlib.contextmanager
    def watching(self, folder: Path, at: int | None = None) -> Iterator[None]:
        """Die in here, or only count."""
        self.folder, self.at, self.seen = str(folder), at, 0
        with patch("polyseme.storage.files.new_name", _name_of_dead):
            try:
                yield
            except DiedError:
                pass
            finally:
                self.folder = None

    def _look(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.folder is None or not self._is_change(event, arguments):
            return
        self.seen += 1
        if self.at is not None and self.seen >= self.at:
            raise DiedError

    def _is_change(self, event: str, arguments: tuple[object, ...]) -> bool:
        if event == "open":
            flags = arguments[2]
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return False
        elif event not in _CHANGES:
            return False
        path = arguments[0]
        return isinstance(path, str | os.PathLike) and str(path).startswith(self.folder or "")


DEATH = Death()


def _name_of_dead(suffix: str = "") -> str:
    return new_name(suffix).replace(f"-{os.getpid()}-", f"-{dead_process()}-")


@functools.cache
def dead_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid
