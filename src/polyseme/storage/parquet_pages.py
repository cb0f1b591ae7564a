"""What the pages of a Parquet column say of themselves, read without unpacking any.

    in   a file and where a column of a row group lies in it
    out  for each page how many values it holds and how large it will be; or a LimitError

The footer's sizes may be lies. What is allocated is what each page's own header asks for, so that
is what is looked at. Headers are Thrift structs in the compact protocol (parquet-format's
`parquet.thrift`); of the protocol only what they can hold is read.
"""

import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from polyseme.limits import LimitError

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
