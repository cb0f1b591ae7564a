"""What a person sees in a notebook while a call works: a bar that moves, and messages.

Rich's own bars need ipywidgets there, in the kernel and in the page, and warn without end where
they are missing. These are a piece of HTML that the notebook replaces: nothing need be installed.
"""

import sys
import time
from typing import Any

from polyseme.display import html_text
from polyseme.progress import duration

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
