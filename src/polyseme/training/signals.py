"""Being asked to stop: noted at once, obeyed when the step in hand is finished and saved."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

# The scheduler's, the keyboard's, and the one Slurm sends before the time is up.
_NAMES = ("SIGTERM", "SIGINT", "SIGUSR1")


class StopRequest:
    """Which signal has asked the run to stop, if one has."""

    def __init__(self) -> None:
        self.by: str | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal. A later one, during the save, must change nothing."""
        del frame
        self.by = self.by or signal.Signals(number).name


@contextlib.contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Listen for signals, and put back what listened before."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # Python lets only the main thread listen
        return
    before = {}
    for name in _NAMES:
        if hasattr(signal, name):  # Windows has no SIGUSR1
            number = getattr(signal, name)
            before[number] = signal.signal(number, request.note)
    try:
        yield request
    finally:
        for number, listener in before.items():
            signal.signal(number, listener)
