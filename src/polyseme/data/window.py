"""Some row groups of a corpus together: the sentences that lie in memory at one time.

Only the columns asked for are read, and words come as a dictionary: each word once, the
rest numbers. So ids and characters are looked up once for each distinct word of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.data.batch import Batch
from polyseme.data.char_vocabulary import Integers
from polyseme.data.table import FIRST_ROW, Pairs, WordTable, pad, with_special_tokens
from polyseme.data.vocabulary import Vocabulary
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import damage_explained

RowGroup = tuple[Path, int]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class CorpusWindow:
    """Sentences of one part, training or held out, in the order of their row groups."""

    table: WordTable
    flat: Codes
    """All sentences one after another, special tokens included, as rows of the table."""
    starts: Integers
    lengths: Integers
    """Where each sentence begins in `flat`, and how long it is, special tokens counted."""
    documents: Codes
    """A number for each sentence's document; empty unless asked for."""
    rows: Integers
    """Where each sentence stood. Only sentences of one document with rows r and r + 1 are
    neighbours; between two row groups a number is left out."""

    def single(self, sentences: Integers) -> Batch:
        """A batch of these sentences."""
        lengths = self.lengths[sentences]
        return self.table.batch(pad(self.flat, self.starts[sentences], lengths), lengths)

    def paired(self, first: Integers, second: Integers, follows: Integers) -> Batch:
        """A batch of pairs: <S> first </S> second </S>."""
        split = self.lengths[first]
        lengths = split + self.lengths[second] - 1  # the second has no <S>
        columns = np.arange(lengths.max(initial=0))
        is_real = columns < lengths[:, None]
        is_second = is_real & (columns >= split[:, None])
        begins = np.where(
            is_second, (self.starts[second] + 1 - split)[:, None], self.starts[first][:, None]
        )
        sources = np.where(is_real, begins + columns, 0)
        matrix = np.where(is_real, self.flat[sources], 0)
        return self.table.batch(matrix, lengths, Pairs(is_second.astype(np.int64), follows))


def row_groups(shards: Sequence[Path]) -> list[RowGroup]:
    """Every row group of these shards, in order."""
    groups: list[RowGroup] = []
    for path in shards:
        with damage_explained(path), ParquetReader(path) as reader:
            groups += [(path, number) for number in range(reader.num_row_groups)]
    return groups


def read_window(
    groups: Sequence[RowGroup], vocabulary: Vocabulary, *, is_held_out: bool, with_documents: bool
) -> CorpusWindow:
    """The training or the held-out sentences of these row groups."""
    columns = ["words", "held_out", *(["document"] if with_documents else [])]
    tables = [_read(path, number, columns) for path, number in groups]
    lists = [chunk for table in tables for chunk in table["words"].chunks]
    sizes = np.concatenate([np.diff(chunk.offsets.to_numpy()) for chunk in lists])
    words = pa.chunked_array([chunk.flatten() for chunk in lists]).unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in words.chunks])
    parts = [table["held_out"].to_numpy() for table in tables]
    chosen = np.flatnonzero(np.concatenate(parts) == is_held_out)
    is_chosen_word = np.repeat(np.concatenate(parts) == is_held_out, sizes)
    table, codes = _look_up(codes[is_chosen_word], words.chunk(0).dictionary, vocabulary)
    lengths = sizes[chosen].astype(np.int64)
    documents = _documents(tables)[chosen] if with_documents else np.empty(0, np.int32)
    gaps = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    with_tokens = lengths + 2
    return CorpusWindow(
        table=table,
        flat=with_special_tokens(codes, lengths),
        starts=np.cumsum(with_tokens) - with_tokens,
        lengths=with_tokens,
        documents=documents,
        rows=(chosen + gaps[chosen]).astype(np.int64),
    )


def _look_up(codes: Codes, dictionary: Any, vocabulary: Vocabulary) -> tuple[WordTable, Codes]:
    """A table of the words that occur, and the codes as rows of it."""
    occurs = np.zeros(len(dictionary), np.bool_)
    occurs[codes] = True
    distinct = np.flatnonzero(occurs)
    rows = np.empty(len(dictionary), np.int32)
    rows[distinct] = np.arange(len(distinct)) + FIRST_ROW
    return vocabulary.table_of(dictionary.take(distinct)), rows[codes]


def _documents(tables: Sequence[Any]) -> Codes:
    """A number for the document of each sentence, the same in all tables."""
    chunks = [chunk for table in tables for chunk in table["document"].chunks]
    unified = pa.chunked_array(chunks).unify_dictionaries()
    return np.concatenate([chunk.indices.to_numpy() for chunk in unified.chunks])


def _read(path: Path, number: int, columns: list[str]) -> Any:
    with damage_explained(path), ParquetReader(path, columns) as reader:
        return reader.read_group(number)
