"""Shards in, `vocabulary.parquet` out: every spelling with its count, most frequent first.

DuckDB groups and sorts on disk when the spellings outgrow the memory it is given, so the
number of distinct words is bounded by the disk, not by the machine.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from polyseme.storage.files import scratch_folder, scratch_for

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
