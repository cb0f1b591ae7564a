"""What a person sees while a command works, in a terminal or a notebook: messages, and a bar.

Rich's own bars need ipywidgets in a notebook, in the kernel and in the page, and warn without end
where they are missing. Here the notebook replaces a piece of HTML: nothing need be installed.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from polyseme.display import JsonLines, PrintableText, html_text, printable
from polyseme.progress import duration


class PlainConsole(Console):
    """A console to which a text is text: no markup, no emoji codes, no control characters.

    A string is one line, whatever is in it; several lines are several renderables.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Before it is laid out, so that widths are right."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The last gate: all that is printed comes through here, whoever made it.

        Rich keeps its own codes for colours and the cursor apart from the text.
        """
        for text, style, control in super().render(renderable, options):
            lines = text if control else "\n".join(map(printable, text.split("\n")))
            yield Segment(lines, style, control)

    def print_whole(self, renderable: RenderableType) -> None:
        """A string is wrapped between words; one longer than the screen, as a path, stays whole, to
        be copied. All else comes as it is, even if it is wider."""
        if isinstance(renderable, Group):
            for each in renderable.renderables:
                self.print_whole(each)
        elif isinstance(renderable, JsonLines):
            for each in renderable.lines():  # of any number, and none is kept
                self.print(Group(each), crop=False)
        elif isinstance(renderable, str):
            for line in _wrapped(printable(renderable), self.width):
                self.print(line, highlight=False, soft_wrap=True)
        else:
            # In a group: Rich would make a new text of one that stands alone, and wrap it.
            self.print(Group(renderable), crop=False)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of whole words, each as long as fits. Rich would break a long word in two."""
    line, *words = text.split(" ")
    for word in words:
        longer = f"{line} {word}"
        if line.strip() and cell_len(longer) > width:
            yield line
            line = word
        else:
            line = longer
    yield line


def show_error(*lines: str) -> None:
    """An error the user can act on, on standard error."""
    console = PlainConsole(stderr=True)
    first, *rest = lines
    # The prefix takes part in the wrapping, and is coloured afterwards.
    beginning, *more = _wrapped(f"Error: {printable(first)}", console.width)
    # Before a word that is longer than a line, the prefix stands alone.
    prefix = beginning[: len("Error: ")]
    text = PrintableText.assemble((prefix, "bold red"), beginning.removeprefix(prefix))
    console.print(text, soft_wrap=True)
    for line in (*more, *rest):
        console.print_whole(line)


def show_warning(message: str) -> None:
    """What a library has to say, on standard error."""
    PlainConsole(stderr=True).print_whole(f"Warning: {message}")


class RichProgress:
    """Shows progress on standard error, so that standard output holds results only."""

    def __init__(self) -> None:
        self.console = PlainConsole()
        self._side = PlainConsole(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=self._side,
        )
        self._task: TaskID | None = None
        self._done = 0

    def __enter__(self) -> "RichProgress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def log(self, message: str) -> None:
        """A line above the bars."""
        self._side.print_whole(message)

    def start(self, what: str, total: int) -> None:
        """A new bar; the one before stays, full."""
        self._task = self._progress.add_task(printable(what), total=total, note="")
        self._done = 0

    def update(self, done: int, note: str = "") -> None:
        """Move the present bar on; it never goes back, though a shard may be done again."""
        assert self._task is not None, "update before start"
        self._done = max(self._done, done)
        self._progress.update(self._task, completed=self._done, note=printable(note))


_EVERY = 0.2  # seconds between two drawings


def is_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, be it of a notebook, a lab or a hosted page."""
    module = sys.modules.get("IPython")  # what has not been imported does not run us
    shell = module.get_ipython() if module else None
    return getattr(shell, "kernel", None) is not None


class NotebookProgress:
    """Bars below the cell that is run."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._what, self._total, self._done, self._note = "", 0, 0, ""
        self._began = self._drawn = 0.0

    def __enter__(self) -> "NotebookProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self._draw()

    def log(self, message: str) -> None:
        """A line of its own."""
        _display(f"<div>{html_text(message)}</div>")

    def start(self, what: str, total: int) -> None:
        """A new bar; the one before stays as it is."""
        self._draw()
        self._what, self._total, self._done, self._note = what, total, 0, ""
        self._began = self._drawn = time.monotonic()
        self._handle = _display(self._html())

    def update(self, done: int, note: str = "") -> None:
        """Move the present bar on; it never goes back, though a shard may be done again."""
        assert self._handle is not None, "update before start"
        self._done, self._note = max(self._done, done), note
        if time.monotonic() - self._drawn >= _EVERY:
            self._draw()

    def _draw(self) -> None:
        if self._handle is None:
            return
        from IPython.display import HTML

        self._drawn = time.monotonic()
        self._handle.update(HTML(self._html()))

    def _html(self) -> str:
        seconds = time.monotonic() - self._began
        share = self._done / self._total if self._total else 0.0
        left = f", {duration(seconds / share - seconds)} left" if 0 < share < 1 else ""
        bar = (
            f'<progress value="{min(self._done, self._total)}" max="{self._total or 1}"></progress>'
        )
        told = f"{share:.0%}, {duration(seconds)}{left} {self._note}".rstrip()
        return f"<div>{html_text(self._what)} {bar} {html_text(told)}</div>"


def _display(html: str) -> Any:
    from IPython.display import HTML, display

    return display(HTML(html), display_id=True)
