"""What tables have in common, and what is printed instead of them for another program."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import ConsoleOptions, Group, RenderResult
from rich.table import Table

from polyseme.printable import PrintableText, json_line


def titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider: a path in it stays in one piece."""
    return Group(on_one_line(title, style="table.title"), table)


def on_one_line(line: str, style: str = "") -> PrintableText:
    """A line that is never wrapped, so that a path or JSON in it can be copied."""
    return PrintableText(line, style, no_wrap=True, overflow="ignore")


@dataclass(frozen=True)
class JsonLines:
    """Values as JSON, one a line; each is made when its line is printed."""

    values: Iterable[Any]

    def lines(self) -> Iterator[PrintableText]:
        """A line for each value."""
        return (on_one_line(json_line(value)) for value in self.values)

    def __rich_console__(self, console: object, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield from self.lines()
