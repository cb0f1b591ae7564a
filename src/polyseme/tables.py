"""What tables have in common."""

from rich.console import Group
from rich.table import Table

from polyseme.printable import PrintableText


def titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider: a path in it stays in one piece."""
    return Group(on_one_line(title, style="table.title"), table)


def on_one_line(line: str, style: str = "") -> PrintableText:
    """A line that is never wrapped, so that a path or JSON in it can be copied."""
    return PrintableText(line, style, no_wrap=True, overflow="ignore")
