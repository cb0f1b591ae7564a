"""Figures about a finished corpus: sentence lengths, coverage, frequent words.

The vocabulary is read a batch at a time, so memory does not grow with it.
"""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polyseme.storage.parquet import read_batches
from polyseme.text.corpus import damage_explained

_LAST_BIN = 100
_ROWS = 1 << 16
_SIZES = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Bin:
    """Sentences of `low` to `high` words; None means: and more."""

    low: int
    high: int | None
    sentences: int

    @property
    def label(self) -> str:
        """As people write it: 10–19, 100+."""
        return f"{self.low}+" if self.high is None else f"{self.low}–{self.high}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of all words that the `size` most frequent ones make up."""

    size: int
    share: float
    rarest: int
    """How often the last of them occurs."""


@dataclass(frozen=True, slots=True)
class Frequent:
    """A word and how often it occurs."""

    word: str
    count: int


def bin_lengths(lengths: Mapping[str, int], *, width: int) -> list[Bin]:
    """The histogram of sentence lengths: bins of one width, so that heights compare, and a rest."""
    sums: Counter[int] = Counter()
    for length, sentences in lengths.items():
        sums[min(int(length), _LAST_BIN) // width * width] += sentences
    lows = range(0, _LAST_BIN, width)
    bins = [Bin(max(low, 1), low + width - 1, sums[low]) for low in lows]
    return [*bins, Bin(_LAST_BIN, None, sums[_LAST_BIN])]


def coverage(vocabulary: Path, words: int) -> list[Coverage]:
    """Coverage at round sizes up to the whole vocabulary."""
    rows: list[Coverage] = []
    seen = covered = count = 0
    sizes = iter(_SIZES)
    size = next(sizes, None)
    with damage_explained(vocabulary):
        for batch in read_batches(vocabulary, ["count"], _ROWS):
            for count in batch.column(0).to_pylist():
                seen += 1
                covered += count
                if seen == size:
                    rows.append(Coverage(size, covered / words, count))
                    size = next(sizes, None)
    if seen and (not rows or rows[-1].size < seen):
        rows.append(Coverage(seen, covered / words, count))
    return rows


def most_frequent(vocabulary: Path, number: int) -> list[Frequent]:
    """The first words of the vocabulary; it is sorted by count."""
    columns = ["word", "count"]
    with damage_explained(vocabulary):
        batches = read_batches(vocabulary, columns)
        every = (row for batch in batches for row in batch.to_pylist())
        rows = list(itertools.islice(every, number))
    return [Frequent(row["word"], row["count"]) for row in rows]
