"""Parquet: a row a document, read a row group at a time, only the columns asked for."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from polyseme.limits import LONGEST_LINE
from polyseme.storage.parquet import ParquetReader, expand
from polyseme.text.formats.tables import check_columns, columns_asked_for, record_of
from polyseme.text.plan import Piece
from polyseme.text.records import ReadItems, Rejected
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source

# A hostile file can claim anything; an honest one has row groups of some 100 MB.
LARGEST_ROW_GROUP = 2 << 30
_FAULTS = (pa.ArrowException, OSError, ValueError)


def plan_row_groups(source: Source, target: int) -> Iterator[tuple[int, int, int]]:
    """Runs of row groups of about `target` packed bytes: first, one past the last, bytes."""
    try:
        with ParquetReader(source.path) as file:
            metadata = file.metadata
    except _FAULTS:
        yield 0, 1, source.bytes  # the reader will reject it, and it is counted there
        return
    first, size = 0, 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        size += sum(row_group.column(i).total_compressed_size for i in range(row_group.num_columns))
        if size >= target:
            yield first, group + 1, size
            first, size = group + 1, 0
    if first < metadata.num_row_groups or first == 0:
        yield first, metadata.num_row_groups, size


def byte_ranges(piece: Piece) -> list[tuple[int, int]]:
    """Where a piece lies in its file; all of it, if nobody can tell."""
    try:
        with ParquetReader(piece.source.path) as file:
            return file.byte_ranges(piece.start, piece.stop)
    except _FAULTS:
        return [(0, piece.source.bytes)]


def read(piece: Piece, config: CorpusConfig) -> ReadItems:
    """A record per row. A damaged row group is rejected by itself."""
    try:
        asked = sorted(set(columns_asked_for(piece.source, config)))
        file = ParquetReader(piece.source.path, asked, content=piece.source.content)
    except _FAULTS as error:
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
    except _FAULTS as error:
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
