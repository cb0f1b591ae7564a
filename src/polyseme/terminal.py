"""What a person sees while a command works: messages, and a bar with the time left."""

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Bars:
    """Shows progress on standard error, so that standard output holds results only."""

    def __init__(self) -> None:
        self.console = Console()
        self._side = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._side,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def say(self, message: str) -> None:
        """A line above the bars."""
        self._side.print(message, highlight=False, markup=False)

    def begin(self, what: str, total: int, unit: str) -> None:  # noqa: ARG002
        """A new bar; the one before stays, full."""
        self._task = self._progress.add_task(what, total=total)

    def advance(self, amount: int) -> None:
        """Move the present bar on."""
        assert self._task is not None, "advance before begin"
        self._progress.advance(self._task, amount)
