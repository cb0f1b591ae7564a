"""Row groups of a Parquet file in batches that fit in memory, whoever wrote it; and a writer.

    in   a file, and the columns that are wanted
    out  record batches of at most some megabytes, text still as dictionaries, and the size of
         each row; `expand` makes plain values of one

Text comes as dictionaries, each value once, because many rows may point at one long value. Only
rows whose size is known and small are ever expanded. Whoever expands anyhow says so, and columns
without such pointers are then read as they are, five times as fast.

The footer's sizes may be lies. What is allocated is what each page's own header asks for, so those
are looked at first, without unpacking any page. Headers are Thrift structs in the compact protocol
(parquet-format's `parquet.thrift`); of the protocol only what they can hold is read.
"""

import io
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polyseme.limits import LARGEST_RATIO, LONGEST_LINE, LimitError, check_size, open_regular
from polyseme.storage.files import ReadingHash, scratch_for

PAGE_BYTES = 256 << 20
"""A page, unpacked. Most writers make pages of 1 MB, some of 100."""
MAX_PAGES = 100_000
"""Pages of one column in one row group."""
_LONGEST_HEADER = 1 << 20
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_INTEGERS = {4, 5, 6}
_SIZE, _PACKED, _HEADERS = 2, 3, (5, 7, 8)  # fields of PageHeader; of data, dictionary, data v2


class Page(NamedTuple):
    """One page."""

    size: int
    """Bytes, unpacked."""
    values: int
    is_dictionary: bool


def scan_pages(stream: IO[bytes], begin: int, end: int) -> Iterator[Page]:
    """The pages that lie between two places of a file."""
    if not 0 <= begin <= end <= os.fstat(stream.fileno()).st_size:
        raise LimitError(f"a column lies at {begin:,} to {end:,}, outside the file")
    place = begin
    for _ in range(MAX_PAGES):
        if place >= end:
            return
        stream.seek(place)
        header = _Compact(stream).struct()
        kind = next((field for field in _HEADERS if isinstance(header.get(field), dict)), None)
        size, packed = header.get(_SIZE, -1), header.get(_PACKED, -1)
        values = header[kind].get(1, -1) if kind else 0
        if min(size, packed, values) < 0:
            raise LimitError("a page has an impossible size")
        if size > PAGE_BYTES:
            raise LimitError(f"a page unpacks to {size:,} bytes, over {PAGE_BYTES:,}")
        yield Page(size, values, kind == _HEADERS[1])
        place = stream.tell() + packed
    if place < end:
        raise LimitError(f"a column has over {MAX_PAGES:,} pages")


class _Compact:
    """Thrift's compact protocol: integers and structs are read, all else is passed over."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = _LONGEST_HEADER

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Fields by number."""
        fields: dict[int, Any] = {}
        number = 0
        if depth > 4:
            raise LimitError("a page's header is nested too deeply")
        while first := self._byte():
            number = number + (first >> 4) if first >> 4 else _signed(self._varint())
            fields[number] = self._value(first & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in _INTEGERS:
            return _signed(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind not in (_DOUBLE, _BINARY):
            raise LimitError("a page has an invalid header")
        length = 8 if kind == _DOUBLE else self._varint()
        self._left -= length
        self._stream.seek(length, os.SEEK_CUR)
        return None

    def _byte(self) -> int:
        found = self._stream.read(1)
        self._left -= 1
        if not found or self._left < 0:
            raise LimitError("a page's header is cut off or too long")
        return found[0]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise LimitError("a page's header has a number without end")


def _signed(value: int) -> int:
    """From zigzag: 0, -1, 1, -2 ..."""
    return (value >> 1) ^ -(value & 1)


FOOTER_BYTES = 16 << 20
"""The footer; some writers make a few hundred bytes for each column of each row group."""
FREE_BYTES = 16 << 20
"""What may come out of even the smallest file; of a larger one LARGEST_RATIO times its size."""
FREE_VALUES = 1 << 20
"""Values of a column of lists that even the smallest one may have."""
VALUES_PER_BYTE = 16
"""Values of a column of lists for each of its bytes on disk. A list of one value again and again
takes no room at all; words take a byte or two."""
TABLE_BYTES = 512 << 20
"""A table that is read as a whole, expanded: the vocabulary of a model."""
_BATCH_BYTES = 16 << 20
_TAIL = 8  # length of the footer, and PAR1

Sizes = npt.NDArray[np.int64]


class ParquetReader:
    """An open file. Faults of the file are LimitError (a ValueError), OSError or ArrowException."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[str] | None = None,
        *,
        will_expand: bool = False,
        content: ReadingHash | None = None,
    ) -> None:
        self.path, self._columns = path, columns
        self._stream = open_regular(path)
        try:
            self._bytes = os.fstat(self._stream.fileno()).st_size
            self._check_footer()
            found = pq.ParquetFile(path).metadata
            texts = _text_columns(found)
            self._plain = {name for name in texts if will_expand and _is_plain(found, name)}
            self._file = pq.ParquetFile(
                path if content is None else _HashedFile(path, content),
                metadata=found,
                read_dictionary=[name for name in texts if name not in self._plain],
                buffer_size=1 << 20,
            )
        except BaseException:
            self._stream.close()
            raise
        self.metadata = self._file.metadata
        self.schema = self._file.schema_arrow
        self._given = 0

    def __enter__(self) -> "ParquetReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._file.close(force=True)

    @property
    def num_row_groups(self) -> int:
        """How many row groups there are."""
        return int(self.metadata.num_row_groups)

    def batches(self, group: int, rows: int = 1024) -> Iterator[tuple[Any, Sizes]]:
        """The rows of a row group, at most `rows` at a time, with the bytes of each, expanded.

        Those over LONGEST_LINE come alone, and are not to be expanded.
        """
        pages = self.check(group)
        fit = max(1, min(rows, int(_BATCH_BYTES / max(1.0, pages))))
        for batch in self._file.iter_batches(
            fit, row_groups=[group], columns=self._columns, use_threads=False
        ):
            sizes = sum(map(_sizes, batch.columns), np.zeros(batch.num_rows, np.int64))
            for begin, end in _spans(sizes):
                part = sizes[begin:end]
                self._count(part)
                yield batch.slice(begin, end - begin), part

    def expanded(self, group: int, rows: int = 1024) -> Iterator[Any]:
        """The rows of a row group as plain values; one over LONGEST_LINE is refused."""
        for batch, sizes in self.batches(group, rows):
            check_size("its longest row", int(sizes.max(initial=0)), LONGEST_LINE)
            yield expand(batch)

    def read_group(self, group: int) -> Any:
        """All of a row group as a table, text as dictionaries."""
        self.check(group)
        # One thread: the others belong to the model that learns meanwhile.
        return self._file.read_row_group(group, self._columns, use_threads=False)

    def check(self, group: int) -> float:
        """Refuse a row group whose pages would take too much memory. Bytes of a row, at most.

        That is the mean of the page where it is largest.
        """
        metadata = self.metadata.row_group(group)
        largest = 0.0
        for number in range(metadata.num_columns if metadata.num_rows else 0):  # or none is read
            column = metadata.column(number)
            if self._columns and column.path_in_schema.split(".")[0] not in self._columns:
                continue
            begin, end = _range_of(column)
            pages = list(scan_pages(self._stream, begin, end))
            if column.path_in_schema in self._plain and any(page.is_dictionary for page in pages):
                raise LimitError(f"the column {column.path_in_schema} is not as its footer says")
            if self.metadata.schema.column(number).max_repetition_level:
                _check_lists(column, pages, end - begin)
            largest += max((page.size / max(1, page.values) for page in pages
                            if not page.is_dictionary), default=0.0)  # fmt: skip
        return largest

    def byte_ranges(self, first: int, stop: int) -> list[tuple[int, int]]:
        """Where the columns of some row groups lie in the file, and its footer."""
        groups = [self.metadata.row_group(n) for n in range(first, min(stop, self.num_row_groups))]
        ranges = [_range_of(group.column(n)) for group in groups for n in range(group.num_columns)]
        ranges.append((self._bytes - _TAIL - self._footer_bytes, self._bytes))
        is_honest = all(0 <= begin <= end <= self._bytes for begin, end in ranges)
        # A footer may say that every column is the whole file, which would be read as often.
        if is_honest and sum(end - begin for begin, end in ranges) <= self._bytes:
            return ranges
        return [(0, self._bytes)]

    def _check_footer(self) -> None:
        self._stream.seek(max(0, self._bytes - _TAIL))
        tail = self._stream.read(_TAIL)
        if len(tail) < _TAIL or tail[4:] != b"PAR1":
            raise LimitError("it does not end as a Parquet file does")
        self._footer_bytes: int = struct.unpack("<I", tail[:4])[0]
        check_size("its footer", self._footer_bytes, FOOTER_BYTES)

    def _count(self, sizes: Sizes) -> None:
        """A row is at least a byte: there may be no rows without end, either."""
        self._given += int(sizes[sizes <= LONGEST_LINE].sum()) + len(sizes)
        if self._given > max(FREE_BYTES, LARGEST_RATIO * self._bytes):
            raise LimitError(f"it unpacks to over {LARGEST_RATIO} times its size")


class _HashedFile(io.FileIO):
    """A file that tells a hash of all that is read from it."""

    def __init__(self, path: Path, content: ReadingHash) -> None:
        super().__init__(path)
        self._content = content

    def read(self, size: int | None = -1, /) -> bytes:
        offset = self.tell()
        data = super().read(-1 if size is None else size) or b""
        self._content.take(offset, data)
        return data


def rows_of_groups(path: Path) -> list[int]:
    """How many rows each row group of a file has."""
    with ParquetReader(path) as reader:
        groups = range(reader.num_row_groups)
        return [reader.metadata.row_group(group).num_rows for group in groups]


def _range_of(column: Any) -> tuple[int, int]:
    """Where a column of a row group lies in the file, by the footer."""
    begin: int = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        begin = min(begin, column.dictionary_page_offset)
    return begin, begin + column.total_compressed_size


def expand(batch: Any) -> Any:
    """The same rows with plain values in the place of dictionaries."""
    arrays = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def read_batches(path: Path, columns: Sequence[str], rows: int = 1024) -> Iterator[Any]:
    """All rows of a file that has these columns, expanded, in batches of at most `rows`."""
    with ParquetReader(path, columns, will_expand=True) as reader:
        if missing := set(columns) - set(reader.schema.names):
            raise LimitError(f"it has no column {sorted(missing)[0]!r}")
        for group in range(reader.num_row_groups):
            yield from reader.expanded(group, rows)


def read_table(path: Path, columns: Sequence[str]) -> Any:
    """A whole table of plain values with the metadata of its schema, at most TABLE_BYTES."""
    batches, total = [], 0
    for batch in read_batches(path, columns, 1 << 16):
        batches.append(batch)
        total += batch.nbytes
        check_size("what it unpacks to", total, TABLE_BYTES)
    with ParquetReader(path, columns) as reader:
        schema = reader.schema
    if not batches:  # old weights may come without a list of words
        batches = [_no_rows(schema, columns)]
    return pa.Table.from_batches(batches).replace_schema_metadata(schema.metadata)


def write_table(table: Any, final: Path) -> None:
    """A file that is either absent or complete."""
    with scratch_for(final) as scratch, scratch.open("wb") as file:
        pq.write_table(table, file, compression="zstd")


def _no_rows(schema: Any, columns: Sequence[str]) -> Any:
    """A batch of these columns, without rows, text as plain strings."""
    types = [schema.field(name).type for name in columns]
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in types]
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in plain], names=list(columns))


def _text_columns(metadata: Any) -> list[str]:
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and column.logical_type.type in ("STRING", "NONE")
    ]


def _is_plain(metadata: Any, name: str) -> bool:
    """Whether every page of a column holds its values itself, by the footer."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    return all(
        not column.has_dictionary_page
        and not any("DICTIONARY" in encoding for encoding in column.encodings)
        for column in columns
        if column.path_in_schema == name
    )


def _check_lists(column: Any, pages: Sequence[Page], packed: int) -> None:
    values = max(column.num_values, sum(page.values for page in pages if not page.is_dictionary))
    most = max(FREE_VALUES, VALUES_PER_BYTE * packed)
    if values > most:
        raise LimitError(
            f"the column {column.path_in_schema} has lists of {values:,} values in {packed:,} "
            f"bytes; at most {most:,} are read"
        )


def _spans(sizes: Sizes) -> Iterator[tuple[int, int]]:
    """Runs of rows of at most LONGEST_LINE bytes; a row that is larger stands alone."""
    if len(sizes) and int(sizes.sum()) <= LONGEST_LINE:  # nearly always
        yield 0, len(sizes)
        return
    begin = total = 0
    for place, size in enumerate(sizes.tolist()):
        if place > begin and total + size > LONGEST_LINE:
            yield begin, place
            begin, total = place, 0
        total += size
    if begin < len(sizes):
        yield begin, len(sizes)


def _sizes(array: Any) -> Sizes:
    """The bytes of each value, expanded."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = np.append(_sizes(array.dictionary), 0)
        codes: Sizes = lengths[array.indices.fill_null(len(lengths) - 1).to_numpy(False)]
        return codes
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        inner = array.values if not pa.types.is_map(kind) else array.items
        ends = np.concatenate([[0], np.cumsum(_sizes(inner) + 8)])
        offsets = array.offsets.to_numpy(False)
        spans: Sizes = np.diff(ends[offsets])
        return spans
    if pa.types.is_struct(kind):
        total: Sizes = sum((_sizes(array.field(n)) for n in range(kind.num_fields)),
                           np.zeros(len(array), np.int64))  # fmt: skip
        return total
    if pa.types.is_fixed_size_list(kind):
        return np.full(len(array), 8 * kind.list_size, np.int64)
    is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if is_text or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        found: Sizes = pc.binary_length(array).fill_null(0).to_numpy(False).astype(np.int64)
        return found
    return np.full(len(array), 8, np.int64)


def required(**columns: Any) -> list[Any]:
    """Fields of a schema that have no gaps, with their types."""
    return [pa.field(name, kind, nullable=False) for name, kind in columns.items()]


class ParquetOutput:
    """An open file; `options` are those of `pq.ParquetWriter`.

    A writer that collects rows is one of these, and says in `flush` how they are written.
    """

    def __init__(self, path: Path, schema: Any, **options: Any) -> None:
        self.schema = schema
        path.parent.mkdir(parents=True, exist_ok=True)
        # A Python file, not a path: a full disk then comes as an OSError with its number.
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, schema, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # Closed even after an error, and before its file: left open, the writer would write to
        # the closed file when it is deleted, which takes the whole process down.
        with self._file, self._writer:
            if kind is None:
                self.flush()

    def flush(self) -> None:
        """Write what was collected and not yet written; called at the end, but after an error."""

    def write(self, arrays: Sequence[Any], *, rows: int | None = None) -> None:
        """An array for each column of the schema: a row group, or several of so many rows."""
        table = pa.Table.from_arrays(arrays, schema=self.schema)
        self._writer.write_table(table, row_group_size=rows)
