"""How long work reports its progress. Silent unless someone listens."""

from datetime import timedelta
from typing import Protocol


def duration(seconds: float) -> str:
    """Time as the bars write it: 0:01:30."""
    return str(timedelta(seconds=round(seconds)))


class Progress(Protocol):
    """Someone who wants to know. The command line shows bars; a library call shows nothing."""

    def log(self, message: str) -> None:
        """Something the user should know before or while work goes on."""

    def start(self, what: str, total: int) -> None:
        """A new stage of work, of so many units."""

    def update(self, done: int, note: str = "") -> None:
        """So many units of the present stage are done; a few words on how it goes."""


class NullProgress:
    """The default listener: none."""

    def log(self, message: str) -> None:
        """Nothing."""

    def start(self, what: str, total: int) -> None:
        """Nothing."""

    def update(self, done: int, note: str = "") -> None:
        """Nothing."""


SILENT: Progress = NullProgress()
"""Where nobody listens."""
