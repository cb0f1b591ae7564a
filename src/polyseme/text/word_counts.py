"""Shards in, `vocabulary.parquet` out: every spelling with its count, most frequent first.

DuckDB groups and sorts on disk when the spellings outgrow the memory it is given, so the
number of distinct words is bounded by the disk, not by the machine.

Figures about a finished corpus: sentence lengths, coverage, frequent words.
"""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from polyseme.storage.files import scratch_folder, scratch_for
from polyseme.storage.parquet import read_batches
from polyseme.text.corpus import damage_explained

_MEMORY = "512MB"
_BATCH = 100_000
VOCABULARY_SCHEMA = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("held_out", pa.int64(), nullable=False),
    ]
)
# Ordered to the last row: equal counts by spelling, so the file is the same on every run.
_QUERY = """
    SELECT word, count(*) AS count, count(*) FILTER (held_out) AS held_out
    FROM (SELECT unnest(words) AS word, held_out FROM read_parquet($shards))
    GROUP BY word ORDER BY count DESC, word
"""


_MERGE = """
    SELECT word, sum(count)::BIGINT AS count, sum(held_out)::BIGINT AS held_out
    FROM read_parquet($shards) GROUP BY word ORDER BY count DESC, word
"""
COUNTS = "counts"
"""Folder for the counts of each shard, where shards are not on this machine."""


def with_word_counts(
    work: Callable[[Any, Path, Callable[[int], None]], tuple[dict[str, Any], str]],
    shard: Any,
    folder: Path,
    report: Callable[[int], None],
) -> tuple[dict[str, Any], str]:
    """The work on a shard, and `counts/NAME.parquet` of what it has written."""
    done = work(shard, folder, report)
    (folder / COUNTS).mkdir()
    count_words(
        [folder / "shards" / f"{shard.name}.parquet"],
        folder / COUNTS / f"{shard.name}.parquet",
        threads=1,
    )
    return done


def merge_counts(tables: Sequence[Path], final: Path, *, threads: int) -> int:
    """One table of all words from those of the shards; returns how many spellings there are."""
    return count_words(tables, final, threads=threads, query=_MERGE)


def count_words(shards: Sequence[Path], final: Path, *, threads: int, query: str = _QUERY) -> int:
    """Count all words of all shards into one table; returns how many spellings there are."""
    with scratch_folder(final.parent) as spilled, scratch_for(final) as scratch:
        return _count(shards, scratch, spilled, threads=threads, query=query)


@contextlib.contextmanager
def open_duckdb(
    database: str, *, memory: str, threads: int, spilled: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that goes to a folder when memory is short, and never to a network."""
    options: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": str(spilled),
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(database, config=options) as connection:
        connection.execute("SET enable_progress_bar = false")  # in a notebook it would draw its own
        yield connection


def _count(shards: Sequence[Path], table: Path, spilled: Path, *, threads: int, query: str) -> int:
    rows = 0
    with open_duckdb(":memory:", memory=_MEMORY, threads=threads, spilled=spilled) as connection:
        names = {"shards": [str(path) for path in shards]}
        result = connection.execute(query, names)
        with (
            table.open("wb") as file,
            # Each word is there once: a dictionary would only be in the way.
            pq.ParquetWriter(
                file, VOCABULARY_SCHEMA, compression="zstd", use_dictionary=["count", "held_out"]
            ) as writer,
        ):
            while batch := result.fetchmany(_BATCH):
                columns = [list(column) for column in zip(*batch, strict=True)]
                writer.write_table(pa.table(columns, schema=VOCABULARY_SCHEMA))
                rows += len(batch)
    return rows


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
