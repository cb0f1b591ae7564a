"""Long work in a thread of its own: how far it is, how long it will take, and how to stop it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from polyseme.errors import PolysemeError
from polyseme.explorer.language import PageError, log_details
from polyseme.training.memory import return_freed_memory

_log = logging.getLogger(__name__)
_STAGES = {
    "Describing uses": "describe",
    "Calibrating on frequent words": "calibrate",
    "Measuring control words": "controls",
}
"""What the pages call what the library says."""
State = Literal["waiting", "running", "done", "failed", "stopped"]


class JobStoppedError(Exception):
    """The user asked for the work to be stopped."""


class WorkQueue:
    """One thread works at a time, and besides it one that has time: it began when no other waited.

    So nobody waits for what takes long and is not needed at once, and two cores have work.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._in_haste = 0  # waiting or at work
        self._is_taken = {False: False, True: False}  # by who has time, or has none

    @contextmanager
    def slot(self, *, has_time: bool = False) -> Iterator[None]:
        """Wait for one's turn, and have it as long as this lasts."""
        with self._changed:
            self._in_haste += not has_time
            self._changed.wait_for(
                lambda: not self._is_taken[has_time] and not (has_time and self._in_haste)
            )
            self._is_taken[has_time] = True
        try:
            yield
        finally:
            with self._changed:
                self._in_haste -= not has_time
                self._is_taken[has_time] = False
                self._changed.notify_all()


class Job:
    """A `Progress` that a page can look at while a thread does the work."""

    def __init__(
        self, work: Callable[["Job"], None], queue: WorkQueue, *, has_time: bool = False
    ) -> None:
        self._queue, self._has_time = queue, has_time
        self._stop = threading.Event()
        self.ended = threading.Event()
        self.state: State = "waiting"
        self.stage = ""
        self.done, self.total = 0, 0
        self.error: PolysemeError | None = None
        self._began = time.monotonic()
        # Only the thread knows the work, which knows the word, which knows this job: a circle would
        # keep a word that is forgotten in memory.
        threading.Thread(target=self._run, args=(work,), daemon=True, name="polyseme-job").start()

    @property
    def is_open(self) -> bool:
        """Whether it waits or works."""
        return self.state in ("waiting", "running")

    @property
    def seconds_left(self) -> float | None:
        """Of this stage, by how it went so far; None as long as nothing can be said."""
        elapsed = time.monotonic() - self._began
        if not self.done or elapsed < 0.5:
            return None
        return elapsed * (self.total - self.done) / self.done

    def stop(self) -> None:
        """Ask it to end; it does so between two uses."""
        self._stop.set()

    def log(self, message: str) -> None:
        """Nobody reads it."""

    def start(self, what: str, total: int) -> None:
        """A new stage."""
        self._check()
        self.stage = _STAGES.get(what, what)
        self.done, self.total, self._began = 0, total, time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """So much of the stage is done."""
        del note
        self._check()
        self.done = done

    def _check(self) -> None:
        if self._stop.is_set():
            raise JobStoppedError

    def _run(self, work: Callable[["Job"], None]) -> None:
        try:
            with self._queue.slot(has_time=self._has_time):
                self._check()
                self.state = "running"
                work(self)
            self.state = "done"
        except JobStoppedError:
            self.state = "stopped"
        except PolysemeError as error:
            log_details(error)
            self.error, self.state = error, "failed"
        except Exception as error:  # noqa: BLE001  # a thread's error would be seen by nobody
            _log.exception("A job failed")
            self.error, self.state = PageError("bug", name=type(error).__name__), "failed"
        finally:
            del work
            self.ended.set()
            return_freed_memory()
