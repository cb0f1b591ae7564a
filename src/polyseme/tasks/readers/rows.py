"""Lines in, rows with named values out; each knows the number of the line it ends on."""

import csv
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from polyseme.errors import InputError
from polyseme.limits import LONGEST_LINE, parse_json
from polyseme.tasks.readers.lines import Lines
from polyseme.text.records import Rejected, quote


class Row(NamedTuple):
    """Values by column, and the line they stand on, from 1."""

    number: int
    values: dict[str, Any]


Rows: TypeAlias = Iterator[Row | Rejected]


def json_lines(lines: Lines) -> Rows:
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
                yield Row(line.number, values)
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
) -> Rows:
    """Rows of CSV or TSV. Every column `asked` for must be there; unnamed ones are 1, 2, 3."""
    columns: list[str] | None = None
    for row in _fields(lines, separator=separator, is_quoted=is_quoted):
        if isinstance(row, Rejected):
            yield row
            continue
        number, fields = row
        if columns is None:
            columns = fields if has_header else [str(n) for n in range(1, len(fields) + 1)]
            _check(columns, asked, f"{name}, line {number}")
            if has_header:
                continue
        if len(fields) != len(columns):
            detail = f"{len(fields)} fields instead of {len(columns)}"
            yield Rejected(number, "wrong-number-of-fields", quote(separator.join(fields)), detail)
        else:
            yield Row(number, dict(zip(columns, fields, strict=True)))


def _fields(
    lines: Lines, *, separator: str, is_quoted: bool
) -> Iterator[tuple[int, list[str]] | Rejected]:
    """The fields of every row that is not blank, and the number of the line it ends on."""
    csv.field_size_limit(LONGEST_LINE)
    feed = _Feed(lines)
    reader = csv.reader(
        feed,
        delimiter=separator,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
        strict=True,
    )
    while True:
        first = feed.number + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            # Most often a quote that is never closed, which makes the rest of the file one field.
            yield Rejected(first, "broken-row", "", f"up to line {feed.number}: {error}")
            continue
        yield from feed.take_rejected()
        if fields is None:
            return
        if any(field.strip() for field in fields):
            yield feed.number, fields


class _Feed:
    """Lines as the CSV reader wants them; what it cannot have is kept for `take_rejected`."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._rejected: list[Rejected] = []
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for line in self._lines:
            if isinstance(line, Rejected):
                self._rejected.append(line)
            else:
                self.number = line.number
                return line.text + "\n"
        raise StopIteration

    def take_rejected(self) -> list[Rejected]:
        """What was passed over since the last call."""
        taken, self._rejected = self._rejected, []
        return taken


def _check(columns: list[str], asked: Sequence[str], place: str) -> None:
    for column in asked:
        if columns.count(column) != 1:
            raise InputError(
                f"{place}: expected one column {column!r}, found {', '.join(columns)}. Say which "
                "column holds what; columns are called 1, 2, 3 if you say there is no header."
            )
