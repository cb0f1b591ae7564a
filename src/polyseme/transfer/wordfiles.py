"""Files of static vectors: word2vec's text and binary form, GloVe's, fastText's `.vec`.

    in   a file, perhaps gzipped, of any size, and the words that are wanted
    out  the vectors of those it has, and an account of what in it was not as it should be

The file is streamed, and only wanted rows are turned into numbers: memory grows with the words
wanted, not with the file. Files from the net have wrong headers, broken UTF-8, rows of other widths
and doubles; such rows are counted and passed over, never guessed at.
"""

import gzip
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Literal

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError
from polyseme.transfer.binaryrows import binary_rows
from polyseme.transfer.unpacking import open_vectors

Floats = npt.NDArray[np.float32]
Format = Literal["auto", "text", "binary"]
WIDEST_VECTOR = 65_536
_SAMPLE = 16  # rows that tell how many numbers a row has
_FEW = 10  # true files have one broken word in thousands, not one in so many
LONGEST_ROW = 1 << 21
"""Bytes of a line: 65,536 numbers of 20 characters, and a word."""


@dataclass
class Account:
    """What was found in a file."""

    rows: int = 0
    """Rows read, good or bad."""
    told_rows: int | None = None
    """Rows that the header speaks of, if there is one."""
    told_width: int | None = None
    """Dimension that the header states."""
    width: int = 0
    """Dimension that there is."""
    doubles: int = 0
    """Rows of a wanted word that has one already; the first counts."""
    wrong_width: int = 0
    """Rows with too few numbers. With too many: the word has a space in it, as some of GloVe's."""
    not_utf8: int = 0
    """Rows whose word is not UTF-8."""
    not_numbers: int = 0
    """Wanted rows with something else than finite numbers."""

    def complaints(self) -> list[str]:
        """What the user should know, in words."""
        told = []
        if self.told_rows is not None and self.told_rows != self.rows:
            told.append(f"the header speaks of {self.told_rows:,} rows, there are {self.rows:,}")
        if self.told_width is not None and self.told_width != self.width:
            told.append(f"the header speaks of {self.told_width} numbers, rows have {self.width}")
        counts = {
            "rows of another width": self.wrong_width,
            "rows whose word is not UTF-8": self.not_utf8,
            "rows with what is no number": self.not_numbers,
            "rows of a word that came before": self.doubles,
        }
        return told + [
            f"{number:,} {what} passed over" for what, number in counts.items() if number
        ]


@dataclass(frozen=True)
class Found:
    """The wanted words that a file has, in its order, and their vectors."""

    words: list[str]
    vectors: Floats  # (V, D)
    account: Account


def read_vectors(
    path: Path, wanted: Collection[str], *, form: Format = "auto", common: int = 0
) -> Found:
    """The vectors of the wanted words, and of the first `common` words of the file."""
    account = Account()
    taken: dict[str, Floats] = {}
    with closing(open_vectors(path)) as stream:
        for word, numbers in _rows(stream, path, account, _Wanted(wanted, common), form):
            if word in taken:
                account.doubles += 1
            elif not np.isfinite(numbers).all():
                account.not_numbers += 1
            else:
                taken[word] = numbers
    if not taken:
        raise InputError(
            f"{path} has no vector for any of the {len(wanted):,} words of the data "
            f"({account.rows:,} rows read; {'; '.join(account.complaints()) or 'all sound'}). Is "
            "it of the same language, and are words written alike?"
        )
    return Found(list(taken), np.stack(list(taken.values())), account)


class _Wanted:
    """Which rows are turned into numbers, decided by what stands before the first space."""

    def __init__(self, words: Collection[str], common: int) -> None:
        self._words, self._common = frozenset(words), common
        self._beginnings = {word.split(" ")[0].encode("utf-8", "replace") for word in words}

    def may_be(self, beginning: bytes, number: int) -> bool:
        """Whether row `number`, which begins so, is worth a closer look."""
        return number < self._common or beginning in self._beginnings

    def __call__(self, word: str, number: int) -> bool:
        return number < self._common or word in self._words


def _rows(
    stream: IO[bytes], path: Path, account: Account, wanted: _Wanted, form: Format
) -> Iterator[tuple[str, Floats]]:
    try:
        first = _line(stream, path)
        header = _header(first)
        account.told_rows, account.told_width = header or (None, None)
        if form == "binary" or (form == "auto" and header and _is_binary(stream, header[1])):
            if header is None:
                raise InputError(f"{path} is not in word2vec's binary form: it has no header.")
            account.width = header[1]
            yield from _binary_rows(stream, path, account, wanted)
        else:
            rest = iter(lambda: _line(stream, path), b"")
            yield from _text_rows(rest if header else chain([first], rest), path, account, wanted)
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path} is damaged: {error}. Download it anew.") from error


def _header(line: bytes) -> tuple[int, int] | None:
    """Rows and width, if the first line tells of nothing else."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 16 for field in fields):
        return None
    rows, width = int(fields[0]), int(fields[1])
    return (rows, width) if 2 <= width <= WIDEST_VECTOR else None


def _is_binary(stream: IO[bytes], width: int) -> bool:
    """Whether what follows the header is no line of text. Leaves the stream where it was."""
    place = stream.tell()
    sample = stream.read(64 + 40 * min(width, 64))
    stream.seek(place)
    numbers = sample.split(b"\n")[0].rstrip().split(b" ")[1:-1][:8]  # the last may be cut off
    return not numbers or any(_number(text) is None for text in numbers)


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text_rows(
    lines: Iterator[bytes], path: Path, account: Account, wanted: _Wanted
) -> Iterator[tuple[str, Floats]]:
    sample = list(islice(lines, _SAMPLE))
    # Not the first row alone, nor the header: either may be the one that is wrong.
    widths = Counter(len(line.rstrip().split(b" ")) - 1 for line in sample)
    account.width = widths.most_common(1)[0][0] if widths else 0
    if not 1 <= account.width <= WIDEST_VECTOR:
        raise InputError(f"{path} is no file of vectors: it begins {b''.join(sample)[:60]!r}.")
    for number, line in enumerate(chain(sample, lines)):
        account.rows += 1
        if wanted.may_be(line.partition(b" ")[0], number):
            yield from _text_row(line, number, account, wanted)
        elif line.count(b" ") < account.width:
            account.wrong_width += 1


def _text_row(
    line: bytes, number: int, account: Account, wanted: _Wanted
) -> Iterator[tuple[str, Floats]]:
    """The row, or nothing if it is broken or of another word."""
    raw, *fields = line.rstrip().rsplit(b" ", account.width)
    if len(fields) < account.width:
        account.wrong_width += 1
        return
    try:
        word = raw.decode("utf-8")
    except UnicodeDecodeError:
        account.not_utf8 += 1
        return
    if not wanted(word, number):
        return
    try:
        with np.errstate(over="ignore"):  # too large for float32: infinite, and so refused
            numbers = np.array([float(field) for field in fields]).astype(np.float32)
    except ValueError:
        account.not_numbers += 1
        return
    yield word, numbers


def _binary_rows(
    stream: IO[bytes], path: Path, account: Account, wanted: _Wanted
) -> Iterator[tuple[str, Floats]]:
    for number, (raw, numbers) in enumerate(
        binary_rows(stream, account.width, wanted=wanted.may_be)
    ):
        account.rows += 1
        try:
            word = raw.decode("utf-8")
        except UnicodeDecodeError:
            account.not_utf8 += 1
            continue
        if numbers is not None and wanted(word, number):
            yield word, numbers
    if _FEW * account.not_utf8 > account.rows:
        raise InputError(
            f"{path} is damaged: {account.not_utf8:,} of {account.rows:,} words are not UTF-8, so "
            f"its rows do not have the {account.width} numbers that its header speaks of."
        )


def _line(stream: IO[bytes], path: Path) -> bytes:
    line = stream.readline(LONGEST_ROW)
    if len(line) == LONGEST_ROW:
        raise InputError(
            f"{path} is no file of vectors: it has a line of more than {LONGEST_ROW:,} bytes."
        )
    return line
