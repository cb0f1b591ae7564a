"""CSV and TSV with a header line: a row a document. Quoted fields may hold line ends."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from polyseme.errors import InputError
from polyseme.text.delimited import NumberedLine, read_rows
from polyseme.text.formats.lines import read_lines
from polyseme.text.formats.rows import record_of
from polyseme.text.pieces import Piece
from polyseme.text.records import BLANK, ReadItems, Rejected, quote
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per row. A row with too few or too many fields is rejected by itself."""
    header: list[str] | None = None
    rows = read_rows(_numbered_lines(piece, config), **_dialect(piece))
    for number, row in enumerate(rows):
        if isinstance(row, Rejected):
            yield row
            continue
        fields = row.fields
        if header is None:
            header = [field.strip() for field in fields]
            check_columns(header, piece.source, config)
        elif not fields:
            yield BLANK
        elif len(fields) != len(header):
            detail = f"{len(fields)} fields, the header has {len(header)}"
            yield Rejected(number, "wrong-number-of-fields", quote(repr(fields)), detail)
        else:
            name = f"{piece.source.name}#{number}"
            yield record_of(dict(zip(header, fields, strict=True)), number, name, config)


def columns_asked_for(source: Source, config: CorpusConfig) -> list[str]:
    """Those that must stand in the file: of the metadata, what is not known from outside it."""
    outside = dict(source.outside)
    asked = [config.text_column, *(name for name in config.meta if name not in outside)]
    return asked + ([config.id_column] if config.id_column else [])


def check_columns(columns: Sequence[str], source: Source, config: CorpusConfig) -> None:
    """Every column the user asked for must be there, once."""
    name = source.name
    for column in columns_asked_for(source, config):
        places = [str(place) for place, each in enumerate(columns, start=1) if each == column]
        if not places:
            raise InputError(
                f"{name} has no column {column!r}. It has: {', '.join(columns)}. "
                "Say which one holds the text with --text-column, and which to keep with --meta."
            )
        if len(places) > 1:
            raise InputError(
                f"{name} has {len(places)} columns named {column!r} (columns "
                f"{', '.join(places)}), so which is meant is not known. Rename all but one."
            )


def _numbered_lines(piece: Piece, config: CorpusConfig) -> Iterator[NumberedLine | Rejected]:
    for number, line in enumerate(read_lines(piece, config), start=1):
        yield line if isinstance(line, Rejected) else NumberedLine(number, line.text)


def _dialect(piece: Piece) -> dict[str, Any]:
    if piece.source.format == "tsv":  # as `cut` and linguists' tools write it: no quoting
        return {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return {}
