"""Lines in, rows with named values out; each knows the number of the line it ends on."""

import csv
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from polyseme.errors import InputError
from polyseme.limits import parse_json
from polyseme.tasks.readers.lines import Lines
from polyseme.text.formats.tables import read_rows
from polyseme.text.records import Rejected, quote


class TableRow(NamedTuple):
    """Values by column, and the line they stand on, from 1."""

    number: int
    values: dict[str, Any]


TableRows: TypeAlias = Iterator[TableRow | Rejected]


def json_lines(lines: Lines) -> TableRows:
    """An object a line; what is not a JSON object is rejected by itself."""
    for line in lines:
        if isinstance(line, Rejected):
            yield line
        elif line.text.strip():
            try:
                values = parse_json(line.text)
                json.dumps(values, ensure_ascii=False).encode()  # half a character is no text
            except (ValueError, RecursionError) as error:
                yield Rejected(line.number, "not-json", quote(line.text), str(error))
                continue
            if isinstance(values, dict):
                yield TableRow(line.number, values)
            else:
                yield Rejected(line.number, "not-a-json-object", quote(line.text))


def delimited(
    lines: Lines,
    *,
    separator: str,
    is_quoted: bool,
    has_header: bool,
    asked: Sequence[str],
    name: str,
) -> TableRows:
    """Rows of CSV or TSV. Every column `asked` for must be there; unnamed ones are 1, 2, 3."""
    columns: list[str] | None = None
    quoting = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    for row in read_rows(lines, delimiter=separator, quoting=quoting):
        if isinstance(row, Rejected):
            yield row
            continue
        number, fields = row
        if not any(field.strip() for field in fields):
            continue
        if columns is None:
            columns = fields if has_header else [str(n) for n in range(1, len(fields) + 1)]
            _check(columns, asked, f"{name}, line {number}")
            if has_header:
                continue
        if len(fields) != len(columns):
            detail = f"{len(fields)} fields instead of {len(columns)}"
            yield Rejected(number, "wrong-number-of-fields", quote(separator.join(fields)), detail)
        else:
            yield TableRow(number, dict(zip(columns, fields, strict=True)))


def _check(columns: list[str], asked: Sequence[str], place: str) -> None:
    for column in asked:
        if columns.count(column) != 1:
            raise InputError(
                f"{place}: expected one column {column!r}, found {', '.join(columns)}. Say which "
                "column holds what; columns are called 1, 2, 3 if you say there is no header."
            )
