"""Formats with named columns: CSV, TSV, JSON lines, Parquet. A row is a document.

A quoted field may hold line ends. A quote that is never closed would take the rest of the file into
one field: only the line with the quote is lost, and reading goes on with the next. Parquet is read
a row group at a time, only the columns asked for.
"""

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from polyseme.errors import InputError
from polyseme.limits import LONGEST_LINE, parse_json
from polyseme.storage.parquet import ParquetReader, expand
from polyseme.text.formats.lines import TextLine, items_of_lines, read_lines
from polyseme.text.plan import PARQUET_FAULTS, Piece
from polyseme.text.records import (
    BLANK,
    Blank,
    ReadItem,
    ReadItems,
    Record,
    RecordSize,
    Rejected,
    quote,
)
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source


class NumberedLine(NamedTuple):
    """A line of a file and its number, from 1."""

    number: int
    text: str


class DelimitedRow(NamedTuple):
    """The fields of a row, and the number of the line it ends on."""

    number: int
    fields: list[str]


def read_rows(
    lines: Iterable[NumberedLine | Rejected], **dialect: Any
) -> Iterator[DelimitedRow | Rejected]:
    """Every row, in order; what breaks the rules of quoting is rejected line by line."""
    csv.field_size_limit(LONGEST_LINE)
    feed = _Feed(iter(lines))
    reader = csv.reader(feed, strict=True, **dialect)
    row: DelimitedRow | Rejected
    while True:
        feed.begin_row()
        try:
            fields = next(reader, None)
        except csv.Error as error:
            row = feed.reject_first_line(str(error))
            reader = csv.reader(feed, strict=True, **dialect)
        else:
            if fields is None:
                yield from feed.rejected
                return
            row = DelimitedRow(feed.taken[-1].number, fields)
        # Lines the reader never saw were rejected before it; they come out in place.
        yield from feed.rejected
        feed.rejected.clear()
        yield row


class _Feed:
    """Lines as the CSV reader wants them, with those of the present row kept."""

    def __init__(self, lines: Iterator[NumberedLine | Rejected]) -> None:
        self._lines = lines
        self._waiting: deque[NumberedLine] = deque()  # those to be read once more
        self._size = RecordSize()
        self.taken: list[NumberedLine] = []
        self.rejected: list[Rejected] = []

    def begin_row(self) -> None:
        """What is read from now on is another row."""
        self.taken.clear()
        self._size.clear()

    def reject_first_line(self, error: str) -> Rejected:
        """Give up the line a row began with; those after it may be rows."""
        first, *rest = self.taken
        # No line is read often: one that opens a quote also ends a field opened before it.
        self._waiting.extendleft(reversed(rest))
        where = f"line {first.number}"
        if rest:
            where += f", read on to line {rest[-1].number}"
        return Rejected(first.number, "broken-row", quote(first.text), f"{where}: {error}")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else self._next_line()
        self.taken.append(line)
        if not self._size.add(len(line.text) + 1) and len(self.taken) > 1:
            raise csv.Error(f"a quote that is not closed in time: {self._size.excess}")
        return line.text + "\n"

    def _next_line(self) -> NumberedLine:
        for line in self._lines:
            if not isinstance(line, Rejected):
                return line
            self.rejected.append(line)
        raise StopIteration


def record_of(row: Mapping[str, Any], place: int, name: str, config: CorpusConfig) -> ReadItem:
    """A row as a record. Its document is itself, under the name in the id column if there is one.

    `name` is the document's name where the user has no id column.
    """
    text = row.get(config.text_column)
    if text is None:
        return Rejected(place, "no-text", quote(str(dict(row))), f"no {config.text_column!r}")
    if not isinstance(text, str):
        return Rejected(place, "text-not-a-string", quote(repr(text)))
    if not text.strip():
        return Blank()
    if config.id_column is not None:
        own = row.get(config.id_column)
        if own is None or own == "":
            return Rejected(place, "no-id", quote(text), f"no {config.id_column!r}")
        name = _as_text(own)
    values = [row.get(column) for column in config.meta]
    meta = tuple(None if value is None else _as_text(value) for value in values)
    return Record(name, text, place, meta, opened=place)


def _as_text(value: Any) -> str:
    """The user's own values are carried as text, one type per column, fit for any shard."""
    return str(value).encode("utf-8", errors="backslashreplace").decode("utf-8")


def read_jsonl(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per line; what is not a JSON object is rejected by itself."""
    return items_of_lines(
        piece, config, lambda line: _item(line, f"{piece.source.name}@{line.start}", config)
    )


def _item(line: TextLine, name: str, config: CorpusConfig) -> ReadItem:
    try:
        row = parse_json(line.text)
        if isinstance(row, dict):
            return record_of(row, line.start, name, config)
    except ValueError as error:
        return Rejected(line.start, "not-json", quote(line.text), str(error))
    return Rejected(line.start, "not-a-json-object", quote(line.text))


def read_table(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per row. A row with too few or too many fields is rejected by itself."""
    header: list[str] | None = None
    dialect: dict[str, Any] = {}
    if piece.source.format == "tsv":  # as `cut` and linguists' tools write it: no quoting
        dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    for number, row in enumerate(read_rows(_numbered_lines(piece, config), **dialect)):
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
                f"{', '.join(places)}), which is ambiguous. Rename all but one."
            )


def _numbered_lines(piece: Piece, config: CorpusConfig) -> Iterator[NumberedLine | Rejected]:
    for number, line in enumerate(read_lines(piece, config), start=1):
        yield line if isinstance(line, Rejected) else NumberedLine(number, line.text)


# A hostile file can claim anything; an honest one has row groups of some 100 MB.
LARGEST_ROW_GROUP = 2 << 30


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per row. A damaged row group is rejected by itself."""
    try:
        asked = sorted(set(columns_asked_for(piece.source, config)))
        file = ParquetReader(piece.source.path, asked, content=piece.source.content)
    except PARQUET_FAULTS as error:
        yield Rejected(0, "broken-file", "", f"not readable as Parquet: {error}")
        return
    with file:
        check_columns(file.schema.names, piece.source, config)
        metadata = file.metadata
        number = sum(metadata.row_group(i).num_rows for i in range(piece.start))
        for group in range(piece.start, min(piece.stop, metadata.num_row_groups)):
            yield from _read_group(file, group, number, piece, config)
            number += metadata.row_group(group).num_rows
            piece.source.on_read(piece.size // (piece.stop - piece.start))


def _read_group(
    file: ParquetReader, group: int, number: int, piece: Piece, config: CorpusConfig
) -> ReadItems:
    metadata = file.metadata.row_group(group)
    if metadata.total_byte_size > LARGEST_ROW_GROUP:
        detail = f"row group {group} unpacks to {metadata.total_byte_size:,} bytes"
        yield Rejected(number, "row-group-too-large", "", detail, units=metadata.num_rows)
        return
    done = 0
    try:
        for batch, sizes in file.batches(group):
            if sizes[0] > LONGEST_LINE:  # such a row comes alone
                detail = f"{sizes[0]:,} bytes, over {LONGEST_LINE:,}"
                yield Rejected(number + done, "row-too-large", "", detail)
                done += 1
                continue
            for row in _rows(expand(batch)):
                place = number + done
                if isinstance(row, Exception):
                    yield Rejected(place, "unreadable-row", "", str(row))
                else:
                    yield record_of(row, place, f"{piece.source.name}#{place}", config)
                done += 1
    except PARQUET_FAULTS as error:
        left = max(metadata.num_rows - done, 1)
        yield Rejected(number + done, "broken-row-group", "", str(error), units=left)


def _rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """Rows as Python values. One that is not, such as text that is not UTF-8, spoils no other."""
    faults = (ValueError, OverflowError)
    try:
        yield from batch.to_pylist()
    except faults:
        for i in range(batch.num_rows):
            try:
                yield batch.slice(i, 1).to_pylist()[0]
            except faults as error:
                yield error
