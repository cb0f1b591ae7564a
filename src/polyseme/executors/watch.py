"""How far the shards in hand are: a worker writes it to a file, the run reads that now and then.

A file, because that is all a process here and a task on another machine have in common. It is
for the eye only: a number that is late, torn or lost does no harm.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from polyseme.limits import read_text

PROGRESS = "progress"
"""Name of the file in a shard's scratch folder."""
_EVERY = 0.5
_LONGEST_NUMBER = 20  # digits

Report = Callable[[int], None]
"""Called by the work on a shard: so much more of `shard.size` is done."""


class ProgressFile:
    """The worker's side: adds up, and writes the sum down twice a second."""

    def __init__(self, scratch: Path) -> None:
        self._path = scratch / PROGRESS
        self._done = 0
        self._written = time.monotonic()

    def __call__(self, amount: int) -> None:
        """So much more is done."""
        self._done += amount
        now = time.monotonic()
        if now - self._written >= _EVERY:
            self._written = now
            with contextlib.suppress(OSError):
                self._path.write_text(str(self._done))


class ProgressPoller:
    """The run's side: reports how much is done in all, finished shards and those in hand."""

    def __init__(self, work: Path, report: Callable[[int], None]) -> None:
        self._work = work
        self._report = report
        self._finished = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> "ProgressPoller":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def add(self, size: int) -> None:
        """A shard of this size is finished."""
        self._finished += size
        self._report(self._finished)

    def _poll(self) -> None:
        while not self._is_over.wait(_EVERY):
            in_hand = sum(map(_read, self._work.glob(f"*/{PROGRESS}")))
            self._report(self._finished + in_hand)


def _read(path: Path) -> int:
    try:
        return int(read_text(path, _LONGEST_NUMBER))
    except (OSError, ValueError):
        return 0
