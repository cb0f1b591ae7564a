"""Sources in, shard inputs out: large files are split, small ones gathered.

The plan depends on the files and settings alone, never on the number of workers, so the corpus is
the same however it was made. A file is split only where a document ends, so that changes no row
either.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from polyseme.storage.files import ReadingHash, canonical_json, stamp_of
from polyseme.storage.parquet import ParquetReader
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source
from polyseme.text.streams import encoding_of, newline_in


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a source: bytes from `start` to `stop`, or row groups of a Parquet file."""

    source: Source
    start: int
    stop: int
    size: int
    """Input bytes, packed as they lie on the disk."""
    continues: bool = False
    """Whether it begins inside a document too long to be kept whole."""

    def content_hash(self) -> ReadingHash:
        """Hash of the bytes it stands for, to be told of those that are being read."""
        if self.source.format == "parquet":
            return ReadingHash(self.source.path, byte_ranges(self))
        return ReadingHash(self.source.path, [(self.start, self.stop)])

    def digest(self, content: str) -> str:
        """Hash of its bytes, with its name: documents are named after it."""
        # The layout was detected at the beginning of the file, which need not be in this piece.
        known = f"{self.source.name} {self.source.layout} {self.start}-{self.stop} {content}"
        outside = self.source.outside
        return f"{known} {canonical_json(outside)}" if outside else known


@dataclass(frozen=True, slots=True)
class ShardPieces:
    """The pieces that become one shard."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Input bytes of all pieces."""
        return sum(piece.size for piece in self.pieces)

    def identity(self) -> str:
        """What changes when one of its files is written to; nothing of them is read."""
        return self.digest([str(stamp_of(piece.source.path)) for piece in self.pieces])

    def staged(self, _folder: Path) -> "ShardPieces":
        """Itself: its files are on this machine."""
        return self

    def digest(self, contents: Sequence[str] | None = None) -> str:
        """Hash of everything this shard is made from; reads it, unless hashes of it are given."""
        if contents is None:
            contents = [piece.content_hash().hexdigest() for piece in self.pieces]
        pairs = zip(self.pieces, contents, strict=True)
        lines = "\n".join(piece.digest(content) for piece, content in pairs)
        return hashlib.sha256(lines.encode()).hexdigest()


PARQUET_FAULTS = (pa.ArrowException, OSError, ValueError)
"""What a damaged Parquet file raises."""


def plan_row_groups(source: Source, target: int) -> Iterator[tuple[int, int, int]]:
    """Runs of row groups of about `target` packed bytes: first, one past the last, bytes."""
    try:
        with ParquetReader(source.path) as file:
            metadata = file.metadata
    except PARQUET_FAULTS:
        yield 0, 1, source.bytes  # the reader will reject it, and it is counted there
        return
    first, size = 0, 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        size += sum(row_group.column(i).total_compressed_size for i in range(row_group.num_columns))
        if size >= target:
            yield first, group + 1, size
            first, size = group + 1, 0
    if first < metadata.num_row_groups or first == 0:
        yield first, metadata.num_row_groups, size


def byte_ranges(piece: Piece) -> list[tuple[int, int]]:
    """Where a piece lies in its file; all of it, if nobody can tell."""
    try:
        with ParquetReader(piece.source.path) as file:
            return file.byte_ranges(piece.start, piece.stop)
    except PARQUET_FAULTS:
        return [(0, piece.source.bytes)]


# Where a document ends, as bytes, in any encoding in which a newline is one byte.
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_LINE_END = re.compile(rb"\n")
_NEW_TEXT = re.compile(rb"\n(?=<(?:text|doc)(?:[ \t][^<>\n]*)?>[ \t\r]*\n)")
_NEW_DOCUMENT = re.compile(rb"\n[ \t\r]*\n(?=# newdoc(?: id)?[ \t\r]*[=\n])")
_WINDOW = 1 << 20
_LONGEST_BOUNDARY = 1 << 16
# A document longer than this is split at a line end (between paragraphs, if its lines are wrapped),
# or one worker would have it all.
_LONGEST_DOCUMENT = 16 << 20


def plan_shards(sources: Sequence[Source], config: CorpusConfig) -> list[ShardPieces]:
    """Pieces in groups of about `shard_bytes` each, in the order of the sources."""
    shards: list[list[Piece]] = [[]]
    size = 0
    for source in sources:
        for piece in _pieces_of(source, config):
            if shards[-1] and size + piece.size > config.shard_bytes:
                shards.append([])
                size = 0
            shards[-1].append(piece)
            size += piece.size
    digits = max(5, len(str(len(shards) - 1)))  # so that they are in order by name, too
    return [ShardPieces(f"part-{i:0{digits}d}", tuple(each)) for i, each in enumerate(shards)]


def _pieces_of(source: Source, config: CorpusConfig) -> Iterator[Piece]:
    if source.format == "parquet":
        for first, last, size in plan_row_groups(source, config.shard_bytes):
            yield Piece(source, first, last, size)
        return
    start, continues = 0, False
    least = max(config.shard_bytes, _LONGEST_DOCUMENT if _is_one_document(source) else 0)
    while (split := _next_split(source, start + least, config)) is not None:
        stop, is_end = split
        yield Piece(source, start, stop, stop - start, continues)
        start, continues = stop, not is_end
    yield Piece(source, start, source.bytes, source.bytes - start, continues)


def _next_split(source: Source, target: int, config: CorpusConfig) -> tuple[int, bool] | None:
    """The first place at or after `target` to split at, and whether a document ends there."""
    boundary = _boundary(source)
    if boundary is None or target >= source.bytes:
        return None
    with source.path.open("rb") as file:
        if newline_in(encoding_of(file.read(4), config.encoding)[0]) != b"\n":
            return None  # UTF-16: a byte that looks like a line end may be half a letter
        file.seek(target)
        line_end = None
        offset, held = target, b""
        while offset + len(held) < source.bytes:
            source.before_reading(offset + len(held), offset + len(held) + _WINDOW)
            block = file.read(_WINDOW)
            if not block:
                break
            held += block
            if (match := boundary.search(held)) and offset + match.end() < source.bytes:
                return offset + match.end(), not _is_one_document(source)
            if line_end is None and (match := _LINE_END.search(held)):
                line_end = offset + match.end()
            if (
                boundary is _BLANK_LINE
                and line_end
                and offset + len(held) - target > _LONGEST_DOCUMENT
            ):
                return line_end, False
            # A boundary may begin here and end in the next block.
            keep = held[-_LONGEST_BOUNDARY:]
            offset += len(held) - len(keep)
            held = keep
    return None


def _is_one_document(source: Source) -> bool:
    return source.format == "text" and source.layout in ("wrapped", "unwrapped")


def _boundary(source: Source) -> re.Pattern[bytes] | None:
    """What a split needs before it, or None for what cannot be split: packed files, CSV, XML."""
    if source.compression:
        return None
    match source.format:
        case "text":
            return _LINE_END if source.layout in ("lines", "unwrapped") else _BLANK_LINE
        case "jsonl":
            return _LINE_END
        case "vertical":
            return _NEW_TEXT
        case "conllu":
            return _NEW_DOCUMENT
        case _:
            return None
