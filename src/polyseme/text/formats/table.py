"""CSV and TSV with a header line: a row a document. Quoted fields may hold line ends."""

import csv
import itertools
from collections.abc import Iterator
from typing import Any

from polyseme.errors import InputError
from polyseme.limits import LONGEST_LINE
from polyseme.text.formats.lines import read_lines
from polyseme.text.formats.rows import record_of
from polyseme.text.pieces import Piece
from polyseme.text.records import BLANK, Items, Rejected, quote
from polyseme.text.settings import CorpusConfig


def read(piece: Piece, config: CorpusConfig) -> Items:
    """A record per row. A row with too few or too many fields is rejected by itself."""
    csv.field_size_limit(LONGEST_LINE)
    rejected: list[Rejected] = []
    reader = csv.reader(_text_lines(piece, config, rejected), **_dialect(piece))
    header: list[str] | None = None
    for number in itertools.count():
        row = _next_row(reader)
        # Lines the reader never saw were rejected before it; they come out in place.
        yield from rejected
        rejected.clear()
        if row is None:
            return
        if isinstance(row, Rejected):
            yield row
        elif header is None:
            check_columns(row, piece.source.name, config)
            header = row
        elif not row:
            yield BLANK
        elif len(row) != len(header):
            detail = f"{len(row)} fields, the header has {len(header)}"
            yield Rejected(number, "wrong-number-of-fields", quote(repr(row)), detail)
        else:
            name = f"{piece.source.name}#{number}"
            yield record_of(dict(zip(header, row, strict=True)), number, name, config)


def _next_row(reader: Any) -> list[str] | Rejected | None:
    first = reader.line_num + 1
    try:
        row: list[str] | None = next(reader, None)
    except csv.Error as error:
        # Most often a quote that is never closed, which makes the rest of the file one field.
        detail = f"lines {first} to {reader.line_num}: {error}"
        return Rejected(first, "broken-row", "", detail)
    return row


def check_columns(columns: list[str], name: str, config: CorpusConfig) -> None:
    """Every column the user asked for must be there."""
    asked = [config.text_column, *config.meta] + ([config.id_column] if config.id_column else [])
    for column in asked:
        if column not in columns:
            raise InputError(
                f"{name} has no column {column!r}. It has: {', '.join(columns)}. "
                "Say which one holds the text with --text-column, and which to keep with --meta."
            )


def _text_lines(piece: Piece, config: CorpusConfig, rejected: list[Rejected]) -> Iterator[str]:
    for line in read_lines(piece, config):
        if isinstance(line, Rejected):
            rejected.append(line)
        else:
            yield line.text + "\n"


def _dialect(piece: Piece) -> dict[str, Any]:
    if piece.source.format == "tsv":  # as `cut` and linguists' tools write it: no quoting
        return {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return {"strict": True}
