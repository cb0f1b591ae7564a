"""The function the executors run on each range of words, once all parts of an index are there.

    in   parts/NAME.uses, each sorted by word; a table that says where each range begins in them
    out  KEY-NUMBER.bin         the rows of the range, those of one word together (`row_type`)
         hashes/KEY-NUMBER.bin  for each word the SHA-256 of its rows, 32 bytes

A range is one piece of every part. Memory holds the range and a few of its pieces, however many
parts there are; a word that has more rows than a range may have goes piece by piece.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.embedding.corpus_parts import CorpusPart
from polyseme.errors import UseIndexError
from polyseme.executors import ShardJob
from polyseme.executors.commit import Done, Report
from polyseme.meanings.index.folder import PARTS, RowShape, range_file, row_type
from polyseme.meanings.index.row_group import COUNT
from polyseme.storage.parquet import ParquetOutput, read_batches, required
from polyseme.storage.records import map_array
from polyseme.storage.remote_folders import SharedFile
from polyseme.storage.store import in_parallel

BUFFER = 128 << 20
"""Bytes of rows that are put in order at once: a range of words, or some pieces of one word."""
HASHES = "hashes"
SHA256 = np.dtype("V32")
_FORMAT = 1  # raise it when the same parts give other files
_AT_ONCE = 8  # pieces that are fetched at once from a store
_PARTS_AT_ONCE = 1_000

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordRange:
    """Some words, one after another in the table of words, and where their rows are."""

    number: int
    uses: Integers
    """How many rows each of the words has."""
    first: int
    """The number of the first of them."""
    table: SharedFile
    """Of each part: its name, the hash of its rows, its first sentence, where ranges begin."""
    folder: Path
    """Where the parts are."""
    url: str
    """The store they can be fetched from; empty if all workers see the folder."""

    @property
    def name(self) -> str:
        """The name of the shard."""
        return f"part-{self.number:05d}"

    @property
    def size(self) -> int:
        """How many rows it has."""
        return int(self.uses.sum())

    def digest(self) -> str:
        """Hash of what it is sorted from; nothing is read for it."""
        return hashlib.sha256(f"{self.table.sha256} {self.number}".encode()).hexdigest()

    def identity(self) -> str:
        """The same."""
        return self.digest()

    def staged(self, _folder: Path) -> "WordRange":
        """Itself: pieces are fetched as they are read."""
        return self


def sorting_job(shape: RowShape, key: str) -> ShardJob:
    """What workers do with a range."""
    return ShardJob(partial(_sort_range, shape, key), f"uses by word {_FORMAT} {key}")


def plan_ranges(
    parts: Sequence[tuple[CorpusPart, int]],
    files: Mapping[str, Mapping[str, Any]],
    shape: RowShape,
    num_words: int,
    table: Path,
) -> tuple[Integers, list[tuple[int, int]]]:
    """Write the table of ranges: of each part, given with its first sentence, where each begins.

    How many uses each word has, and the first and last word of each range.
    """
    folder = table.parent / PARTS
    uses = np.zeros(num_words, np.int64)
    for part, _ in parts:
        counts = _counts_of(part, folder)
        uses[counts["word"]] += counts["uses"]
    ranges = list(_ranges(uses, max(1, BUFFER // row_type(shape).itemsize)))
    firsts = [0, *(last for _, last in ranges)]
    numbers = {str(number): pa.int64() for number in range(len(firsts))}
    texts = {"name": pa.string(), "sha256": pa.string()}
    schema = pa.schema(required(**texts, sentence=pa.int64(), **numbers))
    with ParquetOutput(table, schema, compression="zstd") as output:
        for first in range(0, len(parts), _PARTS_AT_ONCE):
            some = parts[first : first + _PARTS_AT_ONCE]
            names = [part.name for part, _ in some]
            hashes = [files[f"{PARTS}/{name}.uses"]["sha256"] for name in names]
            begins = np.stack([_begins(_counts_of(part, folder), firsts) for part, _ in some])
            columns = [names, hashes, [sentence for _, sentence in some], *begins.T]
            output.write([pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)])
    return uses, ranges


def _counts_of(part: CorpusPart, folder: Path) -> npt.NDArray[Any]:
    return np.array(map_array(folder / f"{part.name}.counts", COUNT))


def _begins(counts: npt.NDArray[Any], firsts: Sequence[int]) -> Integers:
    """How many rows of a part are of words before each of these."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts["uses"], dtype=np.int64)])
    found: Integers = ends[np.searchsorted(counts["word"], firsts)]
    return found


def _ranges(uses: Integers, most: int) -> Iterator[tuple[int, int]]:
    """Words with at most so many uses together, or a single one that has more."""
    ends = np.cumsum(uses)
    first = done = 0
    while first < len(uses):
        last = max(first + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield first, last
        first, done = last, int(ends[last - 1])


def _sort_range(shape: RowShape, key: str, words: WordRange, folder: Path, report: Report) -> Done:
    """Write the files of a range."""
    kind, name = row_type(shape), range_file(key, words.number)
    (folder / HASHES).mkdir()
    pieces = _pieces(words, kind, report)
    with (folder / name).open("wb") as stream:
        if len(words.uses) == 1:
            hashes = [_copied(pieces, stream.write)]
        else:
            rows = _in_order(pieces, words, kind)
            content = rows.view(np.uint8).data
            stream.write(content)
            ends = (np.cumsum(words.uses) * kind.itemsize).tolist()
            spans = zip([0, *ends], ends, strict=False)
            hashes = [hashlib.sha256(content[begin:end]).digest() for begin, end in spans]
    (folder / HASHES / name).write_bytes(b"".join(hashes))
    return {}, words.digest()


def _copied(pieces: Iterator[npt.NDArray[Any]], write: Callable[[Any], object]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        content = piece.view(np.uint8).data
        write(content)
        digest.update(content)
    return digest.digest()


def _in_order(
    pieces: Iterator[npt.NDArray[Any]], words: WordRange, kind: np.dtype[Any]
) -> npt.NDArray[Any]:
    """All rows, by word; those of one word as they come."""
    rows = np.empty(words.size, kind)
    nexts = np.cumsum(words.uses) - words.uses
    for piece in pieces:
        numbers, sizes = np.unique(piece["word"] - words.first, return_counts=True)
        offsets = nexts[numbers] - (np.cumsum(sizes) - sizes)
        rows[np.repeat(offsets, sizes) + np.arange(len(piece))] = piece
        nexts[numbers] += sizes
    return rows


def _pieces(words: WordRange, kind: np.dtype[Any], report: Report) -> Iterator[npt.NDArray[Any]]:
    """The rows of the range, part by part, in the order of the corpus."""

    def read(piece: tuple[SharedFile, int, int, int]) -> npt.NDArray[Any]:
        file, sentence, begin, end = piece
        content = io.BytesIO()
        file.read_into(content, (begin * kind.itemsize, end * kind.itemsize))
        if content.tell() != (end - begin) * kind.itemsize:
            raise UseIndexError(
                f"{file.name} is shorter than it was when it was written. Run the same index "
                "command again."
            )
        rows = np.frombuffer(content.getbuffer(), kind)
        rows["sentence"] += sentence
        return rows

    pieces = _where(words, kind)
    while some := tuple(islice(pieces, _AT_ONCE)):
        for rows in in_parallel(read, some, _AT_ONCE) if words.url else map(read, some):
            yield rows
            report(len(rows))


def _where(words: WordRange, kind: np.dtype[Any]) -> Iterator[tuple[SharedFile, int, int, int]]:
    """Of each part that has any: its file, its first sentence, and some of its rows."""
    most = max(1, BUFFER // _AT_ONCE // kind.itemsize)
    columns = ["name", "sha256", "sentence", str(words.number), str(words.number + 1)]
    for batch in read_batches(words.table.local(), columns, _PARTS_AT_ONCE):
        lists = (batch[column].to_pylist() for column in columns)
        for name, sha256, sentence, first, last in zip(*lists, strict=True):
            file_here = f"{PARTS}/{name}.uses"
            file = SharedFile(words.folder / file_here, words.url, file_here, sha256)
            for begin in range(first, last, most):
                yield file, sentence, begin, min(begin + most, last)
