"""Which words each row group of a shard has, so that a reader of a few words skips the others.

    in   for each row group of a shard, its distinct words and how often each occurs
    out  `word_counts/NAME.parquet` beside `shards/NAME.parquet`: word, row_group, count

Rows are sorted by word and lie in small row groups of their own, so the least and greatest word
of each tell whether it need be read. A shard of any length is written in bounded memory: when
enough rows have come, they are sorted and written, and another sorted run begins.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.storage.parquet import ParquetReader
from polyseme.storage.parquet_writer import ParquetOutput

GROUP_COUNTS_SCHEMA = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("row_group", pa.int32(), nullable=False),
        pa.field("count", pa.int32(), nullable=False),
    ]
)
# Rows of a sorted run: some 20 MB while being written, and forty row groups of a shard.
_RUN = 1_000_000
# Rows that are read to look up one word. Fewer make the file larger, more the look-up slower.
_ROW_GROUP = 16_384


class GroupCountsWriter(ParquetOutput):
    """Collects the words of row groups and writes them out, sorted."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, GROUP_COUNTS_SCHEMA, compression="zstd", write_statistics=["word"])
        self._tables: list[Any] = []
        self._num_groups = self._num_rows = 0

    def add(self, words: Any) -> None:
        """The words of the next row group, as Arrow's dictionary array."""
        counts = np.bincount(words.indices.to_numpy(), minlength=len(words.dictionary))
        groups = np.full(len(counts), self._num_groups, np.int32)
        columns = [words.dictionary, groups, counts.astype(np.int32)]
        self._tables.append(pa.table(columns, schema=GROUP_COUNTS_SCHEMA))
        self._num_groups += 1
        self._num_rows += len(counts)
        if self._num_rows >= _RUN:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as row groups."""
        if not self._tables:
            return
        by_word = [("word", "ascending"), ("row_group", "ascending")]
        table = pa.concat_tables(self._tables).sort_by(by_word)
        self.write(table.columns, rows=_ROW_GROUP)
        self._tables, self._num_rows = [], 0


def find_row_groups(path: Path, words: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Where in a shard these words are, by the shard's `word_counts` file: word, row group, count.

    Faults of the file are those of `ParquetReader`.
    """
    wanted, ordered = pa.array(sorted(words), pa.string()), sorted(words)
    with ParquetReader(path, GROUP_COUNTS_SCHEMA.names) as reader:
        for group in range(reader.num_row_groups):
            if not _may_hold(reader.metadata.row_group(group).column(0).statistics, ordered):
                continue
            table = reader.read_group(group)
            found = table.filter(pc.is_in(table["word"].cast(pa.string()), wanted))
            yield from zip(*(column.to_pylist() for column in found.columns), strict=True)


def _may_hold(statistics: Any, ordered: list[str]) -> bool:
    """Whether one of the words lies between the least and the greatest of a row group."""
    if statistics is None or not statistics.has_min_max:
        return True
    place = bisect_left(ordered, statistics.min)
    return place < len(ordered) and bool(ordered[place] <= statistics.max)
