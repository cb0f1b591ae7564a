"""What a shard is made from: parts of sources, and a hash that differs when they do."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from polyseme.storage.files import ReadingHash, canonical_json, stamp_of
from polyseme.text.sources import Source


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
            from polyseme.text.formats.parquet import byte_ranges

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

    def stamp(self) -> list[tuple[int, int, int]]:
        """What changes when one of its files is written to."""
        return [stamp_of(piece.source.path) for piece in self.pieces]

    def digest(self, contents: Sequence[str] | None = None) -> str:
        """Hash of everything this shard is made from; reads it, unless hashes of it are given."""
        if contents is None:
            contents = [piece.content_hash().hexdigest() for piece in self.pieces]
        pairs = zip(self.pieces, contents, strict=True)
        lines = "\n".join(piece.digest(content) for piece, content in pairs)
        return hashlib.sha256(lines.encode()).hexdigest()
