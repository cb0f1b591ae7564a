"""Tables of uses are complete, and no cell of them does anything in a spreadsheet."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from required import need_package

from meanings.making import make_corpus
from polyseme.errors import ConfigError
from polyseme.meanings.concordance import export
from polyseme.meanings.concordance.export import check_format, guarded, write_table
from polyseme.meanings.concordance.uses import Uses, UseTable, find_uses
from polyseme.meanings.groups import sense_files
from polyseme.meanings.settings import SENSE_FILES, TABLES

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "＝1", "=cmd|' /C calc'!A0"]
HIDDEN = ["well;=1+1", "a; +1", 'a;"=1+1', "a;b;@SUM(A1)"]
PLAIN = ["bank", "1850", "a=b", "<b>", "", "'", "苹果"]


def read(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def uses_with(*values: str) -> Uses:
    """A use for each value, in a sentence and in a column of metadata that hold it."""
    return Uses.of([[value or "x", "bank"] for value in values], [(1, 2)] * len(values),
                   {"note": values})  # fmt: skip


@pytest.mark.parametrize(("name", "delimiter"), [("u.csv", ","), ("u.tsv", "\t"), ("U.CSV", ",")])
def test_a_row_for_each_use_with_all_metadata(tmp_path: Path, name: str, delimiter: str) -> None:
    documents = [("The river bank , open .", {"year": "1850"}), ("bank", {})]
    uses = find_uses(make_corpus(tmp_path, documents, meta=["year"]), "bank")
    write_table(UseTable(uses), tmp_path / name)
    header, first, second = read(tmp_path / name, delimiter)
    assert header == [*("left", "form", "right", "text", "begin", "end"),
                      *("sentence_id", "document", "year")]  # fmt: skip
    text = "The river bank , open ."
    assert first[:6] == ["The river", "bank", ", open .", text, "10", "14"]
    assert first[7:] == ["d0", "1850"]
    assert (second[:3], second[7:]) == (["", "bank", ""], ["d1", ""])


@pytest.mark.parametrize("value", FORMULAS)
def test_what_looks_like_a_formula_is_made_text(tmp_path: Path, value: str) -> None:
    uses_with(value).to_csv(tmp_path / "u.csv")
    [_, row] = read(tmp_path / "u.csv")
    left, note = row[0], row[-1]
    assert left.startswith(("'", "\\"))
    assert note.startswith(("'", "\\"))


@pytest.mark.parametrize("value", [*FORMULAS, *HIDDEN])
def test_no_formula_is_found_where_semicolons_part_the_cells(tmp_path: Path, value: str) -> None:
    uses_with(value).to_csv(tmp_path / "u.csv")
    for row in read(tmp_path / "u.csv", ";"):
        assert not [cell for cell in row if cell.strip(' "')[:1] in ("=", "+", "-", "@", "＝")]


def test_every_field_of_a_csv_file_stands_in_quotes(tmp_path: Path) -> None:
    uses_with("plain").to_csv(tmp_path / "u.csv")
    for line in (tmp_path / "u.csv").read_text("utf-8-sig").splitlines():
        assert line.count('"') == 2 * len(next(csv.reader([line])))


@pytest.mark.parametrize("value", PLAIN)
def test_all_else_stays_as_it_is(tmp_path: Path, value: str) -> None:
    uses_with(value).to_csv(tmp_path / "u.csv")
    assert read(tmp_path / "u.csv")[1][-1] == value


@given(st.text())
def test_no_cell_begins_like_a_formula(value: str) -> None:
    cell = guarded(value)
    assert isinstance(cell, str)
    assert cell.lstrip()[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"}


def test_line_ends_in_a_cell_do_not_break_the_row(tmp_path: Path) -> None:
    uses_with('a\n"b"\r,\x1b').to_csv(tmp_path / "u.csv")
    assert [row[-1] for row in read(tmp_path / "u.csv")[1:]] == ['a\\n"b"\\r,\\x1b']


def test_a_spreadsheet_has_the_same_cells_and_no_formula(tmp_path: Path) -> None:
    openpyxl = need_package("openpyxl")
    values = [*FORMULAS, *PLAIN, "\x00\x0b", "x" * 40_000]
    write_table(UseTable(uses_with(*values)), tmp_path / "u.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "u.xlsx")["uses"]
    header, *rows = sheet.iter_rows()
    assert [cell.value for cell in header][-1] == "note"
    assert "f" not in {cell.data_type for row in rows for cell in row}  # that of a formula
    expected = [*map(guarded, values[:-1]), "x" * 32_766 + "…"]
    assert [row[-1].value or "" for row in rows] == expected


def test_a_name_of_no_known_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"'u.doc'.*{re.escape(', '.join(TABLES))}"):
        check_format(Path("u.doc"))


def test_a_file_that_could_not_be_finished_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "u.csv").write_text("before")
    monkeypatch.setattr(Uses, "__getitem__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        uses_with("a").to_csv(tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / "u.csv"]


def test_every_kind_of_file_that_is_told_can_be_written() -> None:
    assert set(TABLES) == set(export._WRITERS)
    assert set(SENSE_FILES) == set(sense_files._WRITERS)
