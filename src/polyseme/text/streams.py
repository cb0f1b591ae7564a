"""Bytes out of a file and lines out of bytes, in bounded memory whatever the file holds.

    in   a source (plain or compressed) and a byte range
    out  `Line`s: where each begins, its bytes without the line end, and what is wrong with it

A compressed file that grows beyond all measure (a "bomb") or breaks off is cut there, with
the reason; the lines before stay.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from polyseme.text.sources import Source

LONGEST_LINE = 8 << 20
"""A longer line is set aside: no sentence is that long, and memory is bounded by it."""
_BLOCK = 1 << 18
# Text packs 3 to 20 times smaller; zeros pack 1,000 times smaller. Raw bytes are fed in small
# bites, so that the ratio is known before much has come out.
_LARGEST_RATIO = 250
_BITE = 4096
_FREE_BYTES = 1 << 20


class BrokenStreamError(Exception):
    """A compressed file that cannot be read further. Its text is the reason."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `start` is its byte offset in the (unpacked) file."""

    start: int
    raw: bytes
    too_long: bool = False


class _Bites(io.RawIOBase):
    """A file handed out a little at a time, counting what was taken."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), _BITE))
        self.taken += len(data)
        buffer[: len(data)] = data
        return len(data)


def read_blocks(source: Source, start: int, stop: int) -> Iterator[bytes]:
    """The file's bytes from `start` to `stop`, or all of it unpacked, a block at a time."""
    with source.path.open("rb", buffering=0) as file:
        if source.compression is None:
            file.seek(start)
            while start < stop and (block := file.read(min(_BLOCK, stop - start))):
                start += len(block)
                yield block
            return
        bites = _Bites(file)
        try:
            out = 0
            for block in _unpacked(bites, source):
                out += len(block)
                if out > max(_FREE_BYTES, bites.taken * _LARGEST_RATIO):
                    raise BrokenStreamError(f"unpacks to over {_LARGEST_RATIO} times its size")
                yield block
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise BrokenStreamError(f"{source.compression} data broken: {error}") from error


def split_lines(blocks: Iterator[bytes], *, newline: bytes, start: int = 0) -> Iterator[Line]:
    """Cut a stream of blocks into lines. `newline` is the line end in the text's encoding."""
    pending = bytearray()
    skipping = 0  # bytes of an overlong line already let go
    for block in blocks:
        pending += block
        begin = 0
        while (end := _find(pending, newline, begin)) >= 0:
            if skipping:
                skipping += end - begin
                yield Line(start, bytes(pending[begin : begin + 1000]), too_long=True)
                start += skipping + len(newline)
                skipping = 0
            else:
                yield Line(start, bytes(pending[begin:end]), end - begin > LONGEST_LINE)
                start += end - begin + len(newline)
            begin = end + len(newline)
        del pending[:begin]
        if len(pending) > LONGEST_LINE:
            whole = len(pending) - len(pending) % len(newline)  # keep two-byte units together
            skipping += whole
            del pending[:whole]
    if pending or skipping:
        yield Line(start, bytes(pending), bool(skipping) or len(pending) > LONGEST_LINE)


def _find(data: bytearray, newline: bytes, begin: int) -> int:
    """Where the next line ends, or -1. In UTF-16 and UTF-32 only at whole units."""
    unit = len(newline)
    found = data.find(newline, begin)
    while found >= 0 and (found - begin) % unit:
        found = data.find(newline, found + 1)
    return found


def _unpacked(bites: _Bites, source: Source) -> Iterator[bytes]:
    match source.compression:
        case "gz":
            stream: Any = gzip.GzipFile(fileobj=bites)
        case "bz2":
            stream = bz2.BZ2File(bites)
        case "zst":
            import pyarrow as pa

            stream = pa.CompressedInputStream(pa.PythonFile(bites, mode="r"), "zstd")
        case _:
            return _unpacked_xz(bites)
    return iter(lambda: stream.read(1 << 16), b"")


def _unpacked_xz(bites: _Bites) -> Iterator[bytes]:
    """As `lzma.open`, with a limit to the memory a hostile header can ask for."""
    data = bites.read(_BITE)
    while data:
        engine = lzma.LZMADecompressor(memlimit=1 << 28)
        while not engine.eof:
            if engine.needs_input and not data:
                data = bites.read(_BITE)
                if not data:
                    raise EOFError("the file ends before its end-of-stream mark")
            block = engine.decompress(data, max_length=1 << 16)
            data = b""
            if block:
                yield block
        data = (engine.unused_data or bites.read(_BITE) or b"").lstrip(b"\0")  # stream padding
