"""What tables have in common."""

from rich.console import Group
from rich.table import Table
from rich.text import Text


def titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider: a path in it stays in one piece."""
    return Group(Text(title, style="table.title", no_wrap=True, overflow="ignore"), table)
