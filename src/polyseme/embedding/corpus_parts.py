"""What one file of vectors is made from: a row group of a corpus, 10,000 sentences at most.

Not a whole shard: its vectors would be some two gigabytes a layer, lost with a worker's death.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polyseme.storage.files import stamp_of
from polyseme.storage.parquet import ParquetReader, rows_of_groups
from polyseme.storage.remote_folders import SharedFile, is_fetched, link
from polyseme.text.corpus import Corpus, damage_explained, words_of

_COLUMNS = ["sentence_id", "document", "position", "text", "words"]
_ROWS = 1_000  # sentences in memory at a time


@dataclass(frozen=True)
class CorpusSentence:
    """A sentence of a corpus, and where it stands there."""

    sentence_id: str
    document: str
    position: int
    text: str
    words: list[str]


@dataclass(frozen=True, slots=True)
class CorpusPart:
    """One row group of one shard."""

    name: str
    shard: Path
    group: int
    first: int
    """How many sentences of the corpus come before it."""
    size: int
    """Sentences in it."""
    sha256: str
    """Of the shard, from the manifest: a corpus is not hashed once for each of its parts."""
    remote: tuple[SharedFile, ...] = ()
    """The shard and its words, if they are in a store."""

    def digest(self) -> str:
        """Hash of the shard it lies in, and which row group it is."""
        content = f"{self.shard.name} {self.group} {self.sha256}"
        return hashlib.sha256(content.encode()).hexdigest()

    def identity(self) -> str:
        """What changes when the shard is written to."""
        return self.digest() if self.remote else f"{self.digest()} {stamp_of(self.shard)}"

    def staged(self, folder: Path) -> "CorpusPart":
        """Itself if its shard is on this machine, or else with what is fetched into a folder."""
        if self.shard.exists() or not self.remote:
            return self
        for file in self.remote:
            link(file.local(), folder / file.name)
        return replace(self, shard=folder / self.remote[0].name)

    def sentences(self) -> Iterator[CorpusSentence]:
        """All of them, in order."""
        with damage_explained(self.shard), ParquetReader(self.shard, _COLUMNS) as file:
            for rows in file.expanded(self.group, _ROWS):
                columns: list[list[Any]] = [rows[name].to_pylist() for name in _COLUMNS]
                for row in zip(*columns, strict=True):
                    yield CorpusSentence(*row)


def parts_of(corpus: Corpus) -> list[CorpusPart]:
    """All row groups of a corpus, in order, as its manifest or the ends of its files tell them."""
    parts = []
    first = 0
    folder, files = corpus.folder, corpus.manifest["files"]
    for name, described in corpus.described_shards():
        shard, sha256 = folder / name, described["sha256"]
        if (rows := described.get("rows")) is None:
            rows = _rows_of(shard, described["bytes"])
        remote: tuple[SharedFile, ...] = ()
        if is_fetched(folder):
            words = words_of(shard)
            of_words = files[words.relative_to(folder).as_posix()]["sha256"]
            pairs = ((shard, sha256), (words, of_words))
            remote = tuple(SharedFile.of(path, folder, each) for path, each in pairs)
        shard = shard.resolve()
        for group, size in enumerate(rows):
            part = f"{shard.stem}-{group:04d}"
            parts.append(CorpusPart(part, shard, group, first, size, sha256, remote))
            first += size
    return parts


def _rows_of(shard: Path, num_bytes: int) -> list[int]:
    with damage_explained(shard):
        if (size := shard.stat().st_size) != num_bytes:
            raise ValueError(f"{size:,} bytes, its manifest has {num_bytes:,}")
        return rows_of_groups(shard)
