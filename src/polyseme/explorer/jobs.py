"""Long work in a thread of its own: how far it is, how long it will take, and how to stop it."""

import threading
import time
from collections.abc import Callable
from typing import Literal

from polyseme.errors import InternalError, PolysemeError

State = Literal["waiting", "running", "done", "failed", "stopped"]


class JobStoppedError(Exception):
    """The user asked for the work to be stopped."""


class Job:
    """A `Progress` that a page can look at while a thread does the work."""

    def __init__(self, work: Callable[["Job"], None], gate: threading.Semaphore) -> None:
        self._work, self._gate = work, gate
        self._stop = threading.Event()
        self.ended = threading.Event()
        self.state: State = "waiting"
        self.stage = ""
        self.done, self.total = 0, 0
        self.error: PolysemeError | None = None
        self._began = time.monotonic()
        threading.Thread(target=self._run, daemon=True, name="polyseme-job").start()

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
        self.stage, self.done, self.total, self._began = what, 0, total, time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        """So much of the stage is done."""
        del note
        self._check()
        self.done = done

    def _check(self) -> None:
        if self._stop.is_set():
            raise JobStoppedError

    def _run(self) -> None:
        try:
            with self._gate:
                self._check()
                self.state = "running"
                self._work(self)
            self.state = "done"
        except JobStoppedError:
            self.state = "stopped"
        except PolysemeError as error:
            self.error, self.state = error, "failed"
        except Exception as error:  # noqa: BLE001  # a thread's error would be seen by nobody
            told = f"This is a fault in Polyseme, not yours ({type(error).__name__}: {error})."
            self.error, self.state = InternalError(told), "failed"
        finally:
            self.ended.set()
