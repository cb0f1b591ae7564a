"""Uses in, a table of them out: CSV, TSV, a spreadsheet or a data frame, all uses and all metadata.

    in   uses
    out  one row a use: left, form, right, text, its place there, its sentence, document, metadata

Cells come from users' texts. A spreadsheet would run one that begins like a formula, so it is given
an apostrophe first, as spreadsheets themselves do; control characters are shown as escapes.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import ConfigError, MissingExtraError
from polyseme.printable import printable
from polyseme.senses.sentence_table import DOCUMENT
from polyseme.storage.files import scratch_for

if TYPE_CHECKING:
    import pandas

    from polyseme.senses.uses import Use, Uses

_OURS = ("left", "form", "right", "text", "begin", "end", "sentence_id", DOCUMENT)
# What spreadsheets take for the beginning of a formula (OWASP, "CSV injection"); a tab or a line
# end before it is gone when this is asked, as they are shown as escapes.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_MOST_ROWS = 1_048_575  # a spreadsheet's, without the header
_MOST_CHARACTERS = 32_767  # of a spreadsheet's cell


def columns_of(uses: "Uses") -> list[str]:
    """The columns of the table: ours, then the user's, renamed if they are called like ours."""
    return [*_OURS, *(f"{name}_" if name in _OURS else name for name in uses.columns[1:])]


def rows_of(uses: "Uses") -> Iterator[list[str | int | None]]:
    """The rows of the table, as they are in the corpus."""
    return (_row(use) for use in uses)


def _row(use: "Use") -> list[str | int | None]:
    begin = use.starts[use.begin]
    end = use.starts[use.end - 1] + len(use.words[use.end - 1])
    left, right = use.text[:begin].rstrip(), use.text[end:].lstrip()
    place = (begin, end, use.sentence_id, use.document)
    return [left, use.form, right, use.text, *place, *use.metadata.values()]


def to_pandas(uses: "Uses") -> "pandas.DataFrame":
    """A data frame, one row a use."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError(
            "A data frame needs the package 'pandas', which is not installed. "
            "Install it with: pip install pandas"
        ) from error
    return pandas.DataFrame(list(rows_of(uses)), columns=columns_of(uses))


def guarded(value: str | float | None) -> str | float | None:
    """A cell that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def check_format(path: Path) -> str:
    """The kind of table that a file is to be, by the end of its name."""
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise ConfigError(
            f"{path.name!r} does not end in a kind of table that can be written: "
            f"{', '.join(_WRITERS)}."
        )
    if kind == ".xlsx":
        _openpyxl()
    return kind


def write_uses(uses: "Uses", path: Path, kind: str | None = None) -> None:
    """All uses, to a file that is there whole or not at all."""
    write = _WRITERS[kind or check_format(path)]
    with scratch_for(path) as scratch:
        write(uses, scratch)


def _write_delimited(delimiter: str, encoding: str) -> Callable[["Uses", Path], None]:
    def write(uses: "Uses", path: Path) -> None:
        with path.open("w", encoding=encoding, newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(map(guarded, columns_of(uses)))
            writer.writerows(map(guarded, row) for row in rows_of(uses))

    return write


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError.of("openpyxl", extra="xlsx", purpose="A spreadsheet") from error
    return openpyxl


def _write_xlsx(uses: "Uses", path: Path) -> None:
    if len(uses) > _MOST_ROWS:
        raise ConfigError(
            f"{len(uses):,} uses are more than the {_MOST_ROWS:,} rows of a spreadsheet. Write "
            "them to a .csv or .tsv file."
        )
    book = _openpyxl().Workbook(write_only=True)
    sheet = book.create_sheet("uses")
    sheet.append([guarded(name) for name in columns_of(uses)])
    for row in rows_of(uses):
        sheet.append([_short(guarded(value)) for value in row])
    book.save(path)


def _short(cell: str | float | None) -> str | float | None:
    """What fits into a spreadsheet's cell; what was cut ends in a mark."""
    if not isinstance(cell, str) or len(cell) <= _MOST_CHARACTERS:
        return cell
    return cell[: _MOST_CHARACTERS - 1] + "…"


_WRITERS: dict[str, Callable[["Uses", Path], None]] = {
    # With a byte-order mark: without one, Excel takes UTF-8 for the encoding of the country.
    ".csv": _write_delimited(",", "utf-8-sig"),
    ".tsv": _write_delimited("\t", "utf-8"),
    ".xlsx": _write_xlsx,
}
