"""What tables have in common."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from polyseme.cli.terminal import show_error
from polyseme.display import titled


def test_a_long_title_stays_in_one_piece_and_is_no_markup() -> None:
    title = "Accounting of " + "folder[red]/" * 12 + "corpus"
    table = Table()
    table.add_column("count")
    shown = io.StringIO()
    Console(width=40, file=shown).print(titled(title, table), crop=False)
    assert shown.getvalue().splitlines()[0].rstrip() == title


def test_a_path_longer_than_the_screen_stays_in_one_piece(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/folder/with/a/name/that/is/longer/than/the/screen/is/wide"
    show_error(f"There is no folder {path}; a corpus was expected there.")
    printed = capsys.readouterr().err
    assert f"{path};" in printed
    assert len(printed.splitlines()) > 1  # between words it is wrapped
