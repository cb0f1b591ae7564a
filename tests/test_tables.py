"""What tables have in common."""

import io

from rich.console import Console
from rich.table import Table

from polyseme.tables import titled


def test_a_long_title_stays_in_one_piece_and_is_no_markup() -> None:
    title = "Accounting of " + "folder[red]/" * 12 + "corpus"
    table = Table()
    table.add_column("count")
    shown = io.StringIO()
    Console(width=40, file=shown).print(titled(title, table), crop=False)
    assert shown.getvalue().splitlines()[0].rstrip() == title
