"""What tables have in common."""

from rich.console import Group
from rich.table import Table

from polyseme.printable import PrintableText


def titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider: a path in it stays in one piece."""
    return Group(PrintableText(title, "table.title", no_wrap=True, overflow="ignore"), table)
