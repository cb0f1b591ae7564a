"""What a shard is made from: parts of sources, and a hash that differs when they do."""

import hashlib
from dataclasses import dataclass

from polyseme.storage.files import canonical_json, sha256_of
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

    def digest(self) -> str:
        """Hash of the bytes it stands for, with its name: documents are named after it."""
        whole = self.source.format == "parquet"
        content = sha256_of(
            self.source.path, 0 if whole else self.start, None if whole else self.stop
        )
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

    def digest(self) -> str:
        """Hash of everything this shard is made from."""
        lines = "\n".join(piece.digest() for piece in self.pieces)
        return hashlib.sha256(lines.encode()).hexdigest()
