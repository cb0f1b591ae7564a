"""What a person sees while a command works: messages, and a bar with the time left."""

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def show_error(message: str) -> None:
    """An error the user can act on, on standard error."""
    Console(stderr=True).print("[bold red]Error:[/]", escape(message), highlight=False)


class Bars:
    """Shows progress on standard error, so that standard output holds results only."""

    def __init__(self) -> None:
        self.console = Console(markup=False)  # a folder may be named [red]
        self._side = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._side,
        )
        self._task: TaskID | None = None
        self._done = 0

    def __enter__(self) -> "Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, message: str) -> None:
        """A line above the bars."""
        self._side.print(message, highlight=False, markup=False)

    def begin(self, what: str, total: int) -> None:
        """A new bar; the one before stays, full."""
        self._task = self._progress.add_task(what, total=total, note="")
        self._done = 0

    def reach(self, done: int, note: str = "") -> None:
        """Move the present bar on; it never goes back, though a shard may be done again."""
        assert self._task is not None, "reach before begin"
        self._done = max(self._done, done)
        self._progress.update(self._task, completed=self._done, note=escape(note))
