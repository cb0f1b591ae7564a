"""Bytes out of any file, lines out of any bytes, in bounded memory."""

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.limits import LONGEST_LINE
from polyseme.text import streams
from polyseme.text.sources import Compression
from polyseme.text.streams import (
    BrokenStreamError,
    RawLine,
    not_text,
    read_blocks,
    split_lines,
)
from text.making import make_source, pack

COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
# Letters and spaces by chance: packs about twice, far from any bomb.
_LETTERS = random.Random(1).choices(b"abcdefgh \n", k=300_000)
TEXT = bytes(_LETTERS)


def unpack(folder: Path, packed: bytes, compression: Compression) -> bytes:
    source = make_source(folder, packed, compression=compression)
    return b"".join(read_blocks(source, 0, source.bytes))


def unpack_until_broken(folder: Path, packed: bytes, compression: Compression) -> bytes:
    source = make_source(folder, packed, compression=compression)
    out: list[bytes] = []
    with pytest.raises(BrokenStreamError):
        out.extend(read_blocks(source, 0, source.bytes))
    return b"".join(out)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_streams_one_after_another_all_come_out(tmp_path: Path, compression: Compression) -> None:
    parts = [TEXT[:1], TEXT[1:100_000], b"", TEXT[100_000:]]
    for some in (parts, [TEXT], []):
        packed = b"".join(pack(part, compression) for part in some)
        assert unpack(tmp_path, packed, compression) == b"".join(some)


@pytest.mark.parametrize("padding", [4, 4096, 12_000])
@pytest.mark.parametrize("compression", ["gz", "xz"])
def test_zeros_between_streams_hide_nothing(
    tmp_path: Path, compression: Compression, padding: int
) -> None:
    one = pack(TEXT, compression)
    assert unpack(tmp_path, one + bytes(padding) + one, compression) == TEXT + TEXT


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_truncated_file_keeps_what_came_before(tmp_path: Path, compression: Compression) -> None:
    # One stream per 10,000 bytes: however coarse the packer, 20 of them lie before the break.
    streams_of_text = [pack(TEXT[i : i + 10_000], compression) for i in range(0, 300_000, 10_000)]
    packed = b"".join(streams_of_text[:25])[:-7]
    out = unpack_until_broken(tmp_path, packed, compression)
    assert TEXT.startswith(out)
    assert len(out) >= 240_000 - 2 * streams._UNPACKED


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_a_truncated_file_loses_no_whole_stream(tmp_path: Path, compression: Compression) -> None:
    packed = pack(TEXT[:1000], compression) + pack(TEXT[1000:], compression)[:100]
    assert len(unpack_until_broken(tmp_path, packed, compression)) >= 1000


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_garbage_before_behind_or_between_streams_is_told(
    tmp_path: Path, compression: Compression
) -> None:
    packed = pack(TEXT, compression)
    damaged = bytes([packed[0] ^ 0xFF]) + packed[1:]
    for data in (packed + b"this is no compressed stream at all", packed + damaged):
        assert TEXT.startswith(unpack_until_broken(tmp_path, data, compression))
    assert unpack_until_broken(tmp_path, b"plain text\n" * 10, compression) == b""


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_bomb_is_cut_before_it_is_large(tmp_path: Path, compression: Compression) -> None:
    out = unpack_until_broken(tmp_path, pack(bytes(24 << 20), compression), compression)
    assert len(out) <= streams.FREE_BYTES


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_little_file_may_pack_as_well_as_it_likes(
    tmp_path: Path, compression: Compression
) -> None:
    data = b"the same line, forty thousand times in one little file\n" * 40_000
    assert unpack(tmp_path, pack(data, compression), compression) == data


def in_blocks(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    place = 0
    for size in sizes:
        yield data[place : place + size]
        place += size
    yield data[place:]


@given(
    # U+0A00 begins, and U+010A ends, with the byte of a line end in UTF-16.
    lines=st.lists(st.text(alphabet="ab é中\r\u0a00\u010a", max_size=8), max_size=12),
    sizes=st.lists(st.integers(1, 9), max_size=20),
    encoding=st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"]),
)
def test_lines_and_their_places_do_not_depend_on_the_blocks(
    lines: list[str], sizes: list[int], encoding: str
) -> None:
    newline = "\n".encode(encoding)
    raws = [line.encode(encoding) for line in lines]
    data = b"".join(raw + newline for raw in raws)
    places = [sum(len(raw) + len(newline) for raw in raws[:i]) for i in range(len(raws))]
    found = list(split_lines(in_blocks(data, sizes), newline=newline))
    assert found == [RawLine(place, raw) for place, raw in zip(places, raws, strict=True)]


@pytest.mark.parametrize("newline", [b"\n", b"\n\0"])
def test_lines_after_an_overlong_one_keep_their_places(
    monkeypatch: pytest.MonkeyPatch, newline: bytes
) -> None:
    monkeypatch.setattr(streams, "LONGEST_LINE", 100)
    raws = [b"ab", b"cd" * 500, b"ef", b"gh" * 50, b"ij" * 51, b"kl", b"mn" * 51]
    data = newline.join(raws)
    blocks = iter([data[i : i + 7] for i in range(0, len(data), 7)])
    found = list(split_lines(blocks, newline=newline))
    assert [line.start for line in found] == [data.index(raw[:2]) for raw in raws]
    assert [line.too_long for line in found] == [False, True, False, False, True, False, True]
    assert found[1].raw.startswith(b"cdcd")
    assert [found[2].raw, found[5].raw] == [b"ef", b"kl"]


def test_an_overlong_line_is_passed_over_in_bounded_memory() -> None:
    blocks = (b"x" * (1 << 18) for _ in range(400))  # 100 MB without a line end
    tracemalloc.start()
    try:
        list(split_lines(blocks, newline=b"\n"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LONGEST_LINE


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "gb18030"])
def test_what_is_no_text_is_told_from_what_may_be(encoding: str) -> None:
    assert "control characters" in not_text(random.Random(1).randbytes(5_000), encoding)
    assert not_text(bytes(5_000), encoding)
    page = "Eine Seite mit Umlauten: äöü\x0c\n\x1b[1mfett\x1b[0m\t汉字\r\n" * 50
    for written in ("utf-8", "gb18030"):
        assert not not_text(page.encode(written), encoding)
    assert not not_text(random.Random(1).randbytes(100), encoding)


def test_utf_16_without_a_mark_is_told_by_name() -> None:
    text = "The quick brown fox jumps over the lazy dog.\n" * 50
    for order in ("utf-16-le", "utf-16-be"):
        assert f"--encoding {order}" in not_text(text.encode(order), "utf-8")
