"""Tables of results as files: CSV, TSV, a spreadsheet; or as a data frame; and read again.

Cells come from users' texts. A spreadsheet would run one that begins like a formula, so it is given
an apostrophe first, as spreadsheets themselves do; control characters are shown as escapes.
"""

import csv
import re
from collections.abc import Callable, Iterator
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from polyseme.display import printable
from polyseme.errors import ConfigError, InputError, extra_needed_for
from polyseme.limits import FILE_BYTES, LONGEST_LINE, LimitError, read_text
from polyseme.storage.files import disk_faults_explained, scratch_for

if TYPE_CHECKING:
    import pandas

Cell = str | float | None
# What spreadsheets take for the beginning of a formula (OWASP, "CSV injection"): in a cell, and
# behind a semicolon, for in many countries that is what divides a CSV file, whatever quotes say. A
# tab or a line end is gone when this is asked, as they are shown as escapes.
_FORMULA = re.compile(r"(?:^|(?<=;))(?=[\s\"]*[=+\-@＝＋－＠])")
_MOST_ROWS = 1_048_575  # a spreadsheet's, without the header
_MOST_CHARACTERS = 32_767  # of a spreadsheet's cell


@runtime_checkable
class ExportTable(Protocol):
    """What can be written: rows of cells below the names of their columns."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    def rows(self) -> Iterator[list[Cell]]:
        """A value for each column."""

    def __len__(self) -> int:
        """How many rows there are."""


class Tabular:
    """A result that can be had as a table."""

    def table(self) -> ExportTable:
        """Its rows: those that it has itself, unless another table has them."""
        assert isinstance(self, ExportTable)
        return self

    def to_pandas(self) -> "pandas.DataFrame":
        """`table` as a data frame; needs the package pandas."""
        with extra_needed_for("A data frame"):
            import pandas
        table = self.table()
        return pandas.DataFrame(list(table.rows()), columns=table.columns)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """`table` for a spreadsheet or any other tool."""
        write_table(self.table(), Path(path), kind=".csv")


def objects(table: ExportTable) -> Iterator[dict[str, Cell]]:
    """Each row by the names of its columns, for JSON."""
    names = table.columns
    return (dict(zip(names, row, strict=True)) for row in table.rows())


def guarded(value: Cell) -> Cell:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    return _FORMULA.sub("'", printable(value))


_PAGES = (".html", ".htm")


def check_format(path: Path) -> str:
    """The kind of table that a file is to be, by the end of its name."""
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise ConfigError(
            f"{path.name!r} does not end in a kind of table that can be written: "
            f"{', '.join(_WRITERS)}."
            + (" For a page of `senses` or `change`, use --report." if kind in _PAGES else "")
        )
    if kind == ".xlsx":
        _openpyxl()
    return kind


def write_table(table: ExportTable, path: Path, kind: str | None = None) -> None:
    """All rows, to a file that is there whole or not at all."""
    write = _WRITERS[kind or check_format(path)]
    with disk_faults_explained(path.parent), scratch_for(path) as scratch:
        write(table, scratch)


def _write_delimited(delimiter: str, encoding: str) -> Callable[[ExportTable, Path], None]:
    def write(table: ExportTable, path: Path) -> None:
        with path.open("w", encoding=encoding, newline="") as file:
            if delimiter == ",":
                writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            else:
                writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(map(guarded, table.columns))
            writer.writerows(map(guarded, row) for row in table.rows())

    return write


def _openpyxl() -> Any:
    with extra_needed_for("A spreadsheet"):
        import openpyxl
    return openpyxl


def _write_xlsx(table: ExportTable, path: Path) -> None:
    if len(table) > _MOST_ROWS:
        raise ConfigError(
            f"{len(table):,} rows are more than the {_MOST_ROWS:,} rows of a spreadsheet. "
            "Write them to a .csv or .tsv file."
        )
    book = _openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("uses")
    sheet.append([guarded(name) for name in table.columns])
    for row in table.rows():
        sheet.append([_short(guarded(value)) for value in row])
    book.save(path)


def _short(cell: Cell) -> Cell:
    """What fits into a spreadsheet's cell; what was cut ends in a mark."""
    if not isinstance(cell, str) or len(cell) <= _MOST_CHARACTERS:
        return cell
    return cell[: _MOST_CHARACTERS - 1] + "…"


_WRITERS: dict[str, Callable[[ExportTable, Path], None]] = {
    # With a byte-order mark: without one, Excel takes UTF-8 for the encoding of the country.
    ".csv": _write_delimited(",", "utf-8-sig"),
    ".tsv": _write_delimited("\t", "utf-8"),
    ".xlsx": _write_xlsx,
}


_DELIMITERS = (",", ";", "\t")  # Excel writes CSV with the second where a comma is in numbers


def read_table(
    path: Path, is_unquoted: Callable[[list[str]], bool] = lambda _: False
) -> tuple[list[str], Iterator[dict[str, str]]]:
    """The columns and the rows of a table that a person may have filled in with a spreadsheet.

    A missing cell is empty. `is_unquoted`: by its columns, whether a quotation mark in a table with
    tabs is one, and nothing else.
    """
    try:
        text = read_text(path, FILE_BYTES).removeprefix("\ufeff")
    except FileNotFoundError as error:
        raise InputError(f"There is no table at {path}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: it is not UTF-8. Save it as such.") from error
    except (OSError, LimitError) as error:
        raise InputError(f"The table {path} cannot be read: {error}.") from error
    header = text.partition("\n")[0].rstrip("\r")
    delimiter = max(_DELIMITERS, key=header.count)
    is_plain = delimiter == "\t" and is_unquoted(header.split("\t"))
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.DictReader(
        StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if is_plain else csv.QUOTE_MINIMAL,
        restval="",
    )

    def rows() -> Iterator[dict[str, str]]:
        try:
            yield from reader
        except csv.Error as error:
            raise InputError(f"Line {reader.line_num} of {path} is not a row: {error}.") from error

    try:
        return list(reader.fieldnames or ()), rows()
    except csv.Error as error:
        raise InputError(f"The first line of {path} names no columns: {error}.") from error
