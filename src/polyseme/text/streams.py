"""Bytes out of a file and lines out of bytes, in bounded memory whatever the file holds.

    in   a source (plain or compressed) and a byte range
    out  `RawLine`s: where each begins, its bytes without the line end, and what is wrong with it

A compressed file that grows beyond all measure (a "bomb") or breaks off is cut there, with
the reason; the lines before stay.

Encodings: of a stream by its byte-order mark, of a page by the label it carries.

Texts that are given on the command line, or a line each on standard input, where one is `-`.
"""

import bz2
import codecs
import gzip
import io
import itertools
import lzma
import re
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from polyseme.errors import InputError
from polyseme.limits import LARGEST_RATIO, LONGEST_LINE
from polyseme.text.records import QUOTE
from polyseme.text.sources import Source

_BLOCK = 1 << 18
# Raw bytes are fed in small bites, so that the ratio is known before much has come out.
_BITE = 4096
_UNPACKED = 1 << 16
# How well a file packs says nothing as long as little comes out: equal lines pack 1,000 times.
FREE_BYTES = 16 << 20
XZ_MEMORY = 1 << 28
_PROBED = 272  # blocks of `_UNPACKED` bytes: more than is free
# Of data that are no text; of random bytes it is a tenth. Text has form feeds and the like.
_CONTROL_SHARE = 0.05
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_JUDGED = 1 << 16
_FEWEST_JUDGED = 512
_FAULTS = (OSError, EOFError, lzma.LZMAError, zlib.error)


class BrokenStreamError(Exception):
    """A compressed file that cannot be read further. Its text is the reason."""


class NotTextError(Exception):
    """A file that holds no text. Its text is the reason."""


class RawLine(NamedTuple):
    """One line. `start` is its byte offset in the (unpacked) file. There are millions of them."""

    start: int
    raw: bytes
    too_long: bool = False


class _Bites(io.RawIOBase):
    """A file handed out a little at a time, counting what was taken."""

    def __init__(self, file: IO[bytes], on_read: Callable[[int, bytes], None]) -> None:
        super().__init__()
        self._file = file
        self._on_read = on_read
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), _BITE))
        self._on_read(self.taken, data)
        self.taken += len(data)
        buffer[: len(data)] = data
        return len(data)


def read_blocks(
    source: Source, start: int, stop: int, *, num_probed: int = _PROBED
) -> Iterator[bytes]:
    """The file's bytes from `start` to `stop`, or all of it unpacked, a block at a time.

    Of a packed file some megabytes come out before a bomb shows. None of them should be worked on
    first, so `num_probed` blocks are unpacked before the first is given out.
    """

    def note(offset: int, data: bytes) -> None:
        source.on_read(len(data))
        if source.content is not None:
            source.content.take(offset, data)

    with source.path.open("rb", buffering=0) as file:
        if source.compression is None:
            file.seek(start)
            while start < stop and (block := file.read(min(_BLOCK, stop - start))):
                note(start, block)
                start += len(block)
                yield block
            return
        blocks = _measured(_Bites(file, note), source)
        probed: deque[bytes] = deque()
        fault: Exception | None = None
        try:
            probed.extend(itertools.islice(blocks, num_probed))
        except _FAULTS as error:
            fault = error  # what came out before it counts
        while probed:
            yield probed.popleft()
        try:
            if fault is not None:
                raise fault
            yield from blocks
        except _FAULTS as error:
            raise BrokenStreamError(f"{source.compression} data broken: {error}") from error


def _measured(bites: _Bites, source: Source) -> Iterator[bytes]:
    """The file unpacked, until it proves to be a bomb."""
    out = 0
    for block in _unpacked(bites, source):
        out += len(block)
        if out > max(FREE_BYTES, bites.taken * LARGEST_RATIO):
            raise BrokenStreamError(
                f"it unpacks to over {FREE_BYTES >> 20} MB and over {LARGEST_RATIO} times its "
                "size, as a decompression bomb does; if you trust it, decompress it first"
            )
        yield block


def not_text(head: bytes, encoding: str) -> str:
    """Why a file that begins so is no text; nothing if it may be, or if that is little to go by.

    Bytes that are no characters prove only that the encoding is another one, not what they are.
    """
    head = head[:_JUDGED]
    text = head.decode(encoding, errors="replace")
    controls = len(_CONTROL.findall(text))
    if len(head) < _FEWEST_JUDGED or controls < _CONTROL_SHARE * len(text):
        return ""
    halves = head[::2].count(0), head[1::2].count(0)
    if max(halves) > 10 * min(halves) + len(head) // 8:
        order = "utf-16-be" if halves[0] > halves[1] else "utf-16-le"
        return f"every second byte is 0: if it is UTF-16, say --encoding {order}"
    return f"{controls:,} of its first {len(text):,} characters are control characters"


def split_lines(blocks: Iterator[bytes], *, newline: bytes, start: int = 0) -> Iterator[RawLine]:
    """Cut a stream of blocks into lines. `newline` is the line end in the text's encoding."""
    pending, half = b"", b""  # the line so far; what a block has of a unit that ends in the next
    skipping, head = 0, b""  # bytes of an overlong line already let go, and the first of them
    for block in blocks:
        joined = half + block
        edge = len(joined) - len(joined) % len(newline)
        half = joined[edge:]
        first, *rest = _split(joined[:edge], newline)
        *whole, pending = pending + first, *rest
        for raw in whole:
            size = skipping + len(raw)
            is_too_long = size > LONGEST_LINE
            yield RawLine(start, head or raw[:QUOTE] if is_too_long else raw, is_too_long)
            start += size + len(newline)
            skipping, head = 0, b""
        if len(pending) > LONGEST_LINE:
            head = head or pending[:QUOTE]
            skipping += len(pending)
            pending = b""
    pending += half
    if pending or skipping:
        yield RawLine(start, head or pending, bool(skipping))


def _split(data: bytes, newline: bytes) -> list[bytes]:
    """As `bytes.split`, but in UTF-16 and UTF-32 only between whole units."""
    if len(newline) == 1:
        return data.split(newline)
    parts, begin, end = [], 0, data.find(newline)
    while end >= 0:
        # A line end that begins inside a unit is none: half of one letter and half of the next.
        if end % len(newline) == 0:
            parts.append(data[begin:end])
            begin = end + len(newline)
        end = data.find(newline, end + 1)
    return [*parts, data[begin:]]


def _unpacked(bites: _Bites, source: Source) -> Iterator[bytes]:
    match source.compression:
        case "gz":
            stream = gzip.GzipFile(fileobj=bites)
            # Not `read`: it would let go what it has unpacked when it meets a break.
            return iter(lambda: stream.read1(_UNPACKED), b"")
        case "bz2":
            return _unpacked_streams(bites, bz2.BZ2Decompressor)
        case "zst":
            import pyarrow as pa

            packed = pa.CompressedInputStream(pa.PythonFile(bites, mode="r"), "zstd")
            return iter(lambda: packed.read(_UNPACKED), b"")
        case _:
            # A limit to the memory a hostile header can ask for.
            return _unpacked_streams(bites, lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY))


def _unpacked_streams(bites: _Bites, new_decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """As `bz2.open` and `lzma.open`, which pass over a damaged second stream in silence."""
    data = bites.read(_BITE)
    while data:
        decompressor = new_decompressor()
        while not decompressor.eof:
            if decompressor.needs_input and not data:
                data = bites.read(_BITE)
                if not data:
                    raise EOFError("the file ends before its end-of-stream mark")
            block = decompressor.decompress(data, max_length=_UNPACKED)
            data = b""
            if block:
                yield block
        data = decompressor.unused_data.lstrip(b"\0")  # zeros between streams are padding
        while not data and (more := bites.read(_BITE)):
            data = more.lstrip(b"\0")


# Longest first: the UTF-32 mark begins with the UTF-16 one.
_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]
# What browsers take some labels for (WHATWG Encoding Standard): a larger encoding.
_BROADER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
# The standard's. Python knows more, and none of those is for pages: `punycode` takes half a minute
# a megabyte.
_CODECS = frozenset((
    *(f"iso8859-{number}" for number in (*range(2, 9), 10, 13, 14, 15, 16)),
    *("utf-8", "utf-16-be", "utf-16-le", "gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "koi8-r"),
    *("koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874", "cp932", "cp949"),
    *(f"cp{number}" for number in range(1250, 1259)),
))  # fmt: skip
_SUGGESTED = {
    "zh": "gb18030 or big5",
    "ja": "shift_jis or euc_jp",
    "ko": "cp949",
    **dict.fromkeys(("ru", "uk", "be", "bg", "sr", "mk"), "cp1251 or koi8-r"),
    **dict.fromkeys(("pl", "cs", "sk", "hu", "sl", "hr", "ro"), "cp1250 or iso8859-2"),
    "el": "cp1253",
    "tr": "cp1254",
    "he": "cp1255",
    "ar": "cp1256",
    **dict.fromkeys(("lt", "lv", "et"), "cp1257"),
    "vi": "cp1258",
    "th": "cp874",
}


def encoding_of(head: bytes, stated: str) -> tuple[str, int]:
    """The encoding of a stream that begins with `head`, and the length of its byte-order mark."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    # Without a mark the standard says big-endian, but files in the wild are little-endian.
    return {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}.get(
        stated, stated
    ), 0


def newline_in(encoding: str) -> bytes:
    """A line end in this encoding, without a byte-order mark."""
    return "\n".encode(encoding)


def codec_of(label: str) -> str | None:
    """The codec for what a page says of itself; None if it is none of those that pages have."""
    label = label.strip().lower().removeprefix("x-")
    if label.startswith("windows-"):
        label = {"windows-31j": "cp932"}.get(label, f"cp{label.removeprefix('windows-')}")
    try:  # Hebrew and Arabic by the order of their letters: iso-8859-8-i
        name = codecs.lookup(label.removesuffix("-i").removesuffix("-e")).name
    except (LookupError, ValueError):
        return None
    name = _BROADER.get(name, name)
    return name if name in _CODECS else None


def suggested(language: str) -> str:
    """What texts in a language are often written in, if not in UTF-8."""
    return _SUGGESTED.get(language.partition("-")[0].lower(), "cp1252 or latin-1")


STANDARD_INPUT = "-"
MAX_LINES = 1_000_000
"""Texts that are read from standard input: they are in memory together."""


def texts_of(given: Sequence[str]) -> list[str]:
    """What was given, each `-` replaced by the lines of standard input that are not blank."""
    if STANDARD_INPUT not in given:
        return list(given)
    lines = [line.strip() for line in _read_lines().values()]
    return [text for each in given for text in (lines if each == STANDARD_INPUT else [each])]


def pairs_of_lines() -> dict[int, tuple[str, str]]:
    """The two texts of each line of standard input, a tab between them, by the line's number."""
    pairs: dict[int, tuple[str, str]] = {}
    for number, line in _read_lines().items():
        texts = [text.strip() for text in line.split("\t")]
        if len(texts) != 2 or not all(texts):
            raise InputError(
                f"Line {number} of standard input has {len(texts) - 1} tabs. Expected: two "
                f"sentences with one tab between them; found: {line!r:.80}."
            )
        pairs[number] = texts[0], texts[1]
    return pairs


def _read_lines() -> dict[int, str]:
    """The lines that are not blank, by their numbers, which begin at 1."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("There is no standard input to read from.")
    lines: dict[int, str] = {}
    number = size = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        number, size = number + 1, size + len(raw)
        if len(raw) > LONGEST_LINE or len(lines) >= MAX_LINES or size > 32 * LONGEST_LINE:
            raise InputError(
                f"Standard input has a line over {LONGEST_LINE:,} bytes, or more than can be held "
                "at once. Give it in parts."
            )
        try:
            # Some programs on Windows begin a pipe with a byte order mark.
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeError as error:
            raise InputError(
                f"Line {number} of standard input is not UTF-8. Convert it first, for example "
                "with: iconv -f GB18030 -t UTF-8"
            ) from error
        if line.strip():
            lines[number] = line
    if not lines:
        raise InputError("Standard input has no text. Pipe something into it: one text per line.")
    return lines
