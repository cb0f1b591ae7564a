"""Files of static vectors: word2vec's text and binary format, GloVe's, fastText's `.vec`.

    in   a file, perhaps gzipped, of any size, and the words that are wanted
    out  the vectors of those it has, and counts of what in it was not as it should be

The file is streamed, and only wanted rows are turned into numbers: memory grows with the words
wanted, not with the file. A gzipped one is unpacked, but not without end. Files from the net have
wrong headers, broken UTF-8, rows of other dimensions and doubles; such rows are counted and passed
over, never guessed at.
"""

import gzip
import io
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError
from polyseme.limits import LARGEST_RATIO

VectorArray = npt.NDArray[np.float32]
FileFormat = Literal["auto", "text", "binary"]
WIDEST_VECTOR = 65_536
_SAMPLE = 16  # rows that tell how many numbers a row has
_FEW = 10  # true files have one broken word in thousands, not one in so many
LONGEST_ROW = 1 << 21
"""Bytes of a line: 65,536 numbers of 20 characters, and a word."""
LONGEST_WORD = 4_096  # bytes; beyond it these are no words but numbers read at the wrong place
_READ = 1 << 20
FREE_BYTES = 1 << 24
"""Unpacked from even the smallest file; from a larger one LARGEST_RATIO times its size."""


@dataclass
class VectorFileStats:
    """Counts of what was found in a file."""

    rows: int = 0
    """Rows read, good or bad."""
    header_rows: int | None = None
    """Rows that the header speaks of, if there is one."""
    header_dim: int | None = None
    """Dimension that the header states."""
    dim: int = 0
    """Dimension that there is."""
    doubles: int = 0
    """Rows of a wanted word that has one already; the first counts."""
    wrong_dim: int = 0
    """Rows with too few numbers. With too many: the word has a space in it, as some of GloVe's."""
    not_utf8: int = 0
    """Rows whose word is not UTF-8."""
    not_numbers: int = 0
    """Wanted rows with something else than finite numbers."""

    def warnings(self) -> list[str]:
        """What the user should know, in words."""
        told = []
        if self.header_rows is not None and self.header_rows != self.rows:
            told.append(f"the header says {self.header_rows:,} rows, there are {self.rows:,}")
        if self.header_dim is not None and self.header_dim != self.dim:
            told.append(f"the header says {self.header_dim} dimensions, rows have {self.dim}")
        counts = {
            "rows of another dimension": self.wrong_dim,
            "rows whose word is not UTF-8": self.not_utf8,
            "rows with something that is not a number": self.not_numbers,
            "rows of a word that came before": self.doubles,
        }
        return told + [
            f"{number:,} {what} passed over" for what, number in counts.items() if number
        ]


@dataclass(frozen=True)
class FileVectors:
    """The wanted words that a file has, in its order, and their vectors."""

    words: list[str]
    vectors: VectorArray  # (V, D)
    stats: VectorFileStats


def read_vectors(
    path: Path, wanted: Collection[str], *, file_format: FileFormat = "auto", extra_words: int = 0
) -> FileVectors:
    """The vectors of the wanted words, and of the first `extra_words` of the file."""
    stats = VectorFileStats()
    taken: dict[str, VectorArray] = {}
    with closing(open_vectors(path)) as stream:
        for word, numbers in _rows(stream, path, stats, _Wanted(wanted, extra_words), file_format):
            if word in taken:
                stats.doubles += 1
            elif not np.isfinite(numbers).all():
                stats.not_numbers += 1
            else:
                taken[word] = numbers
    if not taken:
        raise InputError(
            f"{path} has no vector for any of the {len(wanted):,} words of the data "
            f"({stats.rows:,} rows read; {'; '.join(stats.warnings()) or 'no errors'}). Is "
            "it for the same language, with the same spelling and case?"
        )
    return FileVectors(list(taken), np.stack(list(taken.values())), stats)


class _Wanted:
    """Which rows are turned into numbers, decided by what stands before the first space."""

    def __init__(self, words: Collection[str], extra_words: int) -> None:
        self._words, self._extra_words = frozenset(words), extra_words
        self._beginnings = {word.split(" ")[0].encode("utf-8", "replace") for word in words}

    def may_be(self, beginning: bytes, number: int) -> bool:
        """Whether row `number`, which begins so, is worth a closer look."""
        return number < self._extra_words or beginning in self._beginnings

    def __call__(self, word: str, number: int) -> bool:
        return number < self._extra_words or word in self._words


def _rows(
    stream: IO[bytes], path: Path, stats: VectorFileStats, wanted: _Wanted, file_format: FileFormat
) -> Iterator[tuple[str, VectorArray]]:
    try:
        first = _line(stream, path)
        header = _header(first)
        stats.header_rows, stats.header_dim = header or (None, None)
        if file_format == "binary" or (
            file_format == "auto" and header and _is_binary(stream, header[1])
        ):
            if header is None:
                raise InputError(f"{path} is not in word2vec's binary format: it has no header.")
            stats.dim = header[1]
            yield from _binary_rows(stream, path, stats, wanted)
        else:
            rest = iter(lambda: _line(stream, path), b"")
            yield from _text_rows(rest if header else chain([first], rest), path, stats, wanted)
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path} is damaged: {error}. Download it again.") from error


def _header(line: bytes) -> tuple[int, int] | None:
    """Rows and dimension, if the first line tells of nothing else."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 16 for field in fields):
        return None
    rows, dim = int(fields[0]), int(fields[1])
    return (rows, dim) if 2 <= dim <= WIDEST_VECTOR else None


def _is_binary(stream: IO[bytes], dim: int) -> bool:
    """Whether what follows the header is no line of text. Leaves the stream where it was."""
    place = stream.tell()
    sample = stream.read(64 + 40 * min(dim, 64))
    stream.seek(place)
    numbers = sample.split(b"\n")[0].rstrip().split(b" ")[1:-1][:8]  # the last may be cut off
    return not numbers or any(_number(text) is None for text in numbers)


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text_rows(
    lines: Iterator[bytes], path: Path, stats: VectorFileStats, wanted: _Wanted
) -> Iterator[tuple[str, VectorArray]]:
    sample = list(islice(lines, _SAMPLE))
    # Not the first row alone, nor the header: either may be the one that is wrong.
    dims = Counter(len(line.rstrip().split(b" ")) - 1 for line in sample)
    stats.dim = dims.most_common(1)[0][0] if dims else 0
    if not 1 <= stats.dim <= WIDEST_VECTOR:
        raise InputError(f"{path} is not a file of vectors: it begins {b''.join(sample)[:60]!r}.")
    for number, line in enumerate(chain(sample, lines)):
        stats.rows += 1
        if wanted.may_be(line.partition(b" ")[0], number):
            yield from _text_row(line, number, stats, wanted)
        elif line.count(b" ") < stats.dim:
            stats.wrong_dim += 1


def _text_row(
    line: bytes, number: int, stats: VectorFileStats, wanted: _Wanted
) -> Iterator[tuple[str, VectorArray]]:
    """The row, or nothing if it is broken or of another word."""
    raw, *fields = line.rstrip().rsplit(b" ", stats.dim)
    if len(fields) < stats.dim:
        stats.wrong_dim += 1
        return
    try:
        word = raw.decode("utf-8")
    except UnicodeDecodeError:
        stats.not_utf8 += 1
        return
    if not wanted(word, number):
        return
    try:
        with np.errstate(over="ignore"):  # too large for float32: infinite, and so refused
            numbers = np.array([float(field) for field in fields]).astype(np.float32)
    except ValueError:
        stats.not_numbers += 1
        return
    yield word, numbers


def _binary_rows(
    stream: IO[bytes], path: Path, stats: VectorFileStats, wanted: _Wanted
) -> Iterator[tuple[str, VectorArray]]:
    for number, (raw, numbers) in enumerate(binary_rows(stream, stats.dim, wanted=wanted.may_be)):
        stats.rows += 1
        try:
            word = raw.decode("utf-8")
        except UnicodeDecodeError:
            stats.not_utf8 += 1
            continue
        if numbers is not None and wanted(word, number):
            yield word, numbers
    if _FEW * stats.not_utf8 > stats.rows:
        raise InputError(
            f"{path} is damaged: {stats.not_utf8:,} of {stats.rows:,} words are not UTF-8, so "
            f"its rows do not have the {stats.dim} numbers that its header says."
        )


def _line(stream: IO[bytes], path: Path) -> bytes:
    line = stream.readline(LONGEST_ROW)
    if len(line) == LONGEST_ROW:
        raise InputError(
            f"{path} is not a file of vectors: it has a line of more than {LONGEST_ROW:,} bytes."
        )
    return line


def binary_rows(
    stream: IO[bytes], dim: int, *, wanted: Callable[[bytes, int], bool]
) -> Iterator[tuple[bytes, VectorArray | None]]:
    """Each whole row's word, and its numbers if they are wanted."""
    size = 4 * dim
    held, place = b"", 0
    for number in itertools.count():
        while (space := held.find(b" ", place, place + LONGEST_WORD)) < 0 or (
            len(held) < space + 1 + size
        ):
            if space < 0 and len(held) - place >= LONGEST_WORD:
                return
            more = stream.read(_READ)
            if not more:
                return
            held, place = held[place:] + more, 0
        raw = held[place:space].lstrip(b"\n")  # some writers end each row with a line end
        numbers = None
        if wanted(raw, number):
            numbers = np.frombuffer(held, "<f4", dim, space + 1).astype(np.float32)
        yield raw, numbers
        place = space + 1 + size


def open_vectors(path: Path) -> IO[bytes]:
    """The file, wherever its name says it is packed or not."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    magic = stream.read(2)
    stream.seek(0)
    if magic != b"\x1f\x8b":
        return stream
    stream.close()
    return io.BufferedReader(_Measured(path), 1 << 16)


class _Measured(io.RawIOBase):
    """A gzipped file, until it proves to be a bomb."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._packed = path, path.stat().st_size
        self._stream = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        number = self._stream.readinto(buffer)
        if self._stream.tell() > max(FREE_BYTES, LARGEST_RATIO * self._packed):
            raise InputError(
                f"{self._path} is not a file of vectors: its {self._packed:,} bytes unpack to over "
                f"{LARGEST_RATIO} times as many."
            )
        return number

    def close(self) -> None:
        self._stream.close()
        super().close()
