"""Shards in, `vocabulary.parquet` out: every spelling with its count, most frequent first.

DuckDB groups and sorts on disk when the spellings outgrow the memory it is given, so the
number of distinct words is bounded by the disk, not by the machine. Of very many shards, ranges are
counted first, wherever there are workers, and their tables merged.

Figures about a finished corpus: sentence lengths, coverage, frequent words.
"""

import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polyseme.storage.files import scratch_folder, scratch_for
from polyseme.storage.parquet import read_batches, required
from polyseme.storage.remote_folders import SharedFile
from polyseme.text.corpus import damage_explained

_MEMORY = "512MB"
_BATCH = 100_000
_SMALL = 256 << 10  # bytes of a shard
VOCABULARY_SCHEMA = pa.schema(required(word=pa.string(), count=pa.int64(), held_out=pa.int64()))
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
    name = f"{shard.name}.parquet"
    made, final = folder / "shards" / name, folder / COUNTS / name
    if made.stat().st_size > _SMALL:
        count_words([made], final, threads=1)
    else:
        pq.write_table(_counts_of(made), final)
    return done


def _counts_of(shard: Path) -> Any:
    """The words of a small shard with their counts, before DuckDB would have started."""
    total = VOCABULARY_SCHEMA.empty_table()
    sums = [("count", "sum"), ("held_out", "sum")]
    with pq.ParquetFile(shard) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, ["words", "held_out"]).combine_chunks()
            [words] = rows["words"].chunks or [pa.array([], rows.schema.field("words").type)]
            flat = pc.list_flatten(words).cast(pa.string())
            held_out = rows["held_out"].take(pc.list_parent_indices(words)).cast(pa.int64())
            ones = pa.array(np.ones(len(flat), np.int64))
            found = pa.table([flat, ones, held_out], VOCABULARY_SCHEMA.names)
            both = pa.concat_tables([total, found.cast(VOCABULARY_SCHEMA)])
            total = both.group_by("word", use_threads=False).aggregate(sums)
            total = total.rename_columns(VOCABULARY_SCHEMA.names).cast(VOCABULARY_SCHEMA)
    return total.sort_by("word")


@dataclass(frozen=True)
class CountedRange:
    """Some shards whose words are counted as one piece of work, or tables of their counts."""

    name: str
    folder: Path
    url: str
    """The store that the folder stands for; empty if it is one."""
    tables: tuple[tuple[str, str], ...]
    """The name and SHA-256 of each."""

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.tables)

    def digest(self) -> str:
        """Hash of what is counted; nothing is read for it."""
        return hashlib.sha256("\n".join(sha256 for _, sha256 in self.tables).encode()).hexdigest()

    def identity(self) -> str:
        """The same."""
        return self.digest()

    def staged(self, _folder: Path) -> "CountedRange":
        """Itself: tables are fetched as they are read."""
        return self


def count_range(
    part: CountedRange, folder: Path, report: Callable[[int], None]
) -> tuple[dict[str, Any], str]:
    """Write `counts/NAME.parquet` for a range."""
    (folder / COUNTS).mkdir()
    files = (SharedFile(part.folder / name, part.url, name, each) for name, each in part.tables)
    tables = [file.local() for file in files]
    query = _MERGE if part.url else _QUERY  # in a store, each shard has its own counts
    count_words(tables, folder / COUNTS / f"{part.name}.parquet", threads=1, query=query)
    report(part.size)
    return {}, part.digest()


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
