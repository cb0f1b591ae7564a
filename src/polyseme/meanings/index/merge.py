"""What was made of each row group in, one index sorted by word out, in bounded memory.

    in   parts/*, each sorted by word, in the order of the corpus
    out  data/*-KEY.*, as `index_folder.py` says

As each part is sorted, a range of words is one slice of each. So ranges are taken one after
another, as large as a buffer; a word that is larger by itself is copied part by part.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.embedding.corpus_parts import CorpusPart
from polyseme.meanings.features.use_features import Syntax
from polyseme.meanings.index.folder import DATA, PARTS, RowShape, row_type
from polyseme.meanings.index.row_group import COUNT
from polyseme.storage.files import publish, scratch_folder
from polyseme.storage.parquet import read_batches
from polyseme.storage.parquet_writer import ParquetOutput
from polyseme.storage.records import RecordWriter, map_array
from polyseme.text.corpus import Corpus, damage_explained

BUFFER = 64 << 20
"""Bytes of rows that are sorted at once."""
_ROWS = 1 << 16
_WORDS = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("uses", pa.int64(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
    ]
)
_PARTS = pa.schema(
    [
        pa.field(name, pa.int64(), nullable=False)
        for name in ("shard", "row_group", "first_sentence", "first_value")
    ]
)
_SUBSTITUTES = pa.schema([pa.field("word", pa.string(), nullable=False)])
_SYNTAX = pa.schema([("side", pa.int64()), ("direction", pa.list_(pa.float32()))])


@dataclass
class _PartUses:
    """The uses of a part, read from the front."""

    rows: npt.NDArray[Any]
    counts: npt.NDArray[Any]
    first_sentence: int
    next_count: int = 0
    next_row: int = 0

    def take(self, before: int) -> npt.NDArray[Any]:
        """The rows of words below `before` that were not taken yet; numbers of sentences of all."""
        begin = self.next_count
        size = int(np.searchsorted(self.counts["word"][begin:], before))
        number = int(self.counts["uses"][begin : begin + size].sum())
        taken = np.array(self.rows[self.next_row : self.next_row + number])
        taken["sentence"] += self.first_sentence
        self.next_count, self.next_row = begin + size, self.next_row + number
        return taken


@dataclass(frozen=True)
class Merge:
    """The parts of an index and how they become one."""

    folder: Path
    key: str
    parts: Sequence[CorpusPart]
    shape: RowShape

    def run(
        self,
        corpus: Corpus,
        words: dict[str, int],
        substitutes: Sequence[str],
        syntax: Syntax | None,
    ) -> None:
        """Write all files, each whole or not at all."""
        with self._scratch() as scratch:
            sentences, values = (self._join(scratch, name) for name in ("sentences", "values"))
            self._write_parts(scratch, corpus, sentences, values)
            with RecordWriter(scratch / f"vocabulary-{self.key}") as writer:
                writer.extend(_words_of(corpus))
            self._write_table(scratch, "substitutes", _SUBSTITUTES, [list(substitutes)])
            sides = enumerate(syntax.directions if syntax else ())
            directions = [(side, each.tolist()) for side, some in sides for each in some]
            columns = [list(column) for column in zip(*directions, strict=True)] or [[], []]
            self._write_table(scratch, "syntax", _SYNTAX, columns)
            uses, hashes = self._write_uses(scratch, sentences, len(words))
            columns = [list(words), list(words.values()), uses.tolist(), hashes]
            self._write_table(scratch, "words", _WORDS, columns)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        with scratch_folder(self.folder) as scratch:
            yield scratch
            for path in sorted(scratch.iterdir()):
                publish(path, self.folder / DATA / path.name)

    def _part(self, part: CorpusPart, suffix: str) -> Path:
        return self.folder / PARTS / f"{part.name}.{suffix}"

    def _join(self, scratch: Path, name: str) -> list[int]:
        """The records of all parts one after another; where each part's begin."""
        firsts = []
        with RecordWriter(scratch / f"{name}-{self.key}") as writer:
            for part in self.parts:
                firsts.append(writer.count)
                writer.append_file(self._part(part, name))
        return firsts

    def _write_parts(
        self, scratch: Path, corpus: Corpus, sentences: list[int], values: list[int]
    ) -> None:
        numbers = {shard.resolve(): number for number, shard in enumerate(corpus.shards)}
        shards = [numbers[part.shard] for part in self.parts]
        groups = [part.group for part in self.parts]
        self._write_table(scratch, "parts", _PARTS, [shards, groups, sentences, values])

    def _write_table(self, scratch: Path, name: str, schema: Any, columns: list[Any]) -> None:
        path = scratch / f"{name}-{self.key}.parquet"
        with ParquetOutput(path, schema, compression="zstd") as output:
            arrays = [pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)]
            output.write(arrays, rows=_ROWS)

    def _write_uses(
        self, scratch: Path, sentences: list[int], num_words: int
    ) -> tuple[npt.NDArray[np.int64], list[str]]:
        """The uses of each word, and the hash of their rows."""
        kind = row_type(self.shape)
        uses = np.zeros(num_words, np.int64)
        opened = []
        for part, first in zip(self.parts, sentences, strict=True):
            counts = map_array(self._part(part, "counts"), COUNT)
            rows = map_array(self._part(part, "uses"), kind, int(counts["uses"].sum()))
            opened.append(_PartUses(rows, counts, first))
            uses[counts["word"]] += counts["uses"]
        hashes: list[str] = []
        with ExitStack() as stack:
            stream = stack.enter_context((scratch / f"uses-{self.key}.bin").open("wb"))
            for begin, end in _ranges(uses, BUFFER // kind.itemsize):
                if end - begin == 1:
                    hashes.append(_copy_word(opened, end, stream))
                else:
                    hashes += _sort_words(opened, uses[begin:end], end, stream)
        return uses, hashes


def _ranges(uses: npt.NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Runs of words that have at most so many uses together; a word with more is one by itself."""
    ends = np.cumsum(uses)
    begin = 0
    while begin < len(uses):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield begin, end
        begin = end


def _copy_word(parts: Sequence[_PartUses], end: int, stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        rows = part.take(end).tobytes()
        digest.update(rows)
        stream.write(rows)
    return digest.hexdigest()


def _sort_words(
    parts: Sequence[_PartUses], uses: npt.NDArray[np.int64], end: int, stream: IO[bytes]
) -> list[str]:
    rows = np.concatenate([part.take(end) for part in parts])
    rows = rows[np.argsort(rows["word"], kind="stable")]  # within a word, as in the corpus
    stream.write(rows.tobytes())
    ends = np.cumsum([0, *uses.tolist()])
    spans = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [hashlib.sha256(rows[begin:end].tobytes()).hexdigest() for begin, end in spans]


def _words_of(corpus: Corpus) -> Iterator[bytes]:
    with damage_explained(corpus.vocabulary):
        for batch in read_batches(corpus.vocabulary, ["word"], _ROWS):
            yield from (word.encode("utf-8", "surrogatepass") for word in batch["word"].to_pylist())
