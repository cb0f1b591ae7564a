"""Figures about a finished corpus: sentence lengths, coverage, frequent words.

The vocabulary is read a batch at a time, so memory does not grow with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

_EDGES = (1, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200)
_SIZES = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Bin:
    """Sentences of `low` to `high` words; None means: and more."""

    low: int
    high: int | None
    sentences: int

    @property
    def label(self) -> str:
        """As people write it: 10–14, 200+."""
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


def bin_lengths(lengths: Mapping[str, int]) -> list[Bin]:
    """The histogram of sentence lengths, from the exact counts in the manifest."""
    exact = {int(length): sentences for length, sentences in lengths.items()}
    bins = []
    for low, after in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        inside = (m for n, m in exact.items() if n >= low and (after is None or n < after))
        bins.append(Bin(low, None if after is None else after - 1, sum(inside)))
    return bins


def coverage(vocabulary: Path, words: int) -> list[Coverage]:
    """Coverage at round sizes up to the whole vocabulary."""
    rows: list[Coverage] = []
    seen = covered = count = 0
    sizes = iter(_SIZES)
    size = next(sizes, None)
    for batch in pq.ParquetFile(vocabulary).iter_batches(columns=["count"]):
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
    first = next(pq.ParquetFile(vocabulary).iter_batches(batch_size=number, columns=columns), None)
    rows = first.to_pylist() if first is not None else []
    return [Frequent(row["word"], row["count"]) for row in rows]
