"""A finished folder of vectors: what it holds, and the vectors of a word.

Its manifest has the hashes of the model and of the corpus, so that vectors of two models are never
taken for one another's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from typing_extensions import TypedDict

from polyseme.config import build
from polyseme.embedding.settings import VectorsConfig
from polyseme.errors import VectorsError
from polyseme.storage.folders import (
    CONFIG,
    ArtifactType,
    FileList,
    damaged_files,
    read_manifest,
)
from polyseme.storage.parquet import ParquetReader
from polyseme.storage.remote_folders import address_of, local_folder

VECTORS = "vectors"
"""Folder, in the output, of the files of vectors."""
_TEXTS = {"sentence_id", "document", "word"}
_KEYS = ["sentence_id", "document", "position", "word_index", "word"]


class _EmbeddedCounts(TypedDict):
    sentences: int
    sentences_embedded: int
    words_read: int
    unread_words: int
    vectors: int


COUNTS = tuple(_EmbeddedCounts.__annotations__)
"""What is counted in each part and told of all."""


class _VectorsManifest(TypedDict):
    """What is read of it."""

    model: str
    settings: dict[str, Any]
    environments: list[dict[str, str | int]]
    columns: list[str]
    dim: int
    explained_variance_ratio: list[float]
    counts: _EmbeddedCounts


_METADATA = (
    "model",
    "corpus",
    "settings",
    "environments",
    "columns",
    "dim",
    "explained_variance_ratio",
    "counts",
)
ARTIFACT = ArtifactType(
    name="vectors",
    version=5,
    files=frozenset({CONFIG}),
    metadata_keys=_METADATA,
    older={4: _METADATA},
    made_by="polyseme embed CORPUS --model MODEL",
    shape=_VectorsManifest,
    folders=frozenset({VECTORS}),
    remedy="Run the same embed command again: it repairs them.",
    error=VectorsError,
)


@dataclass(frozen=True)
class VectorFolder:
    """Vectors as `polyseme embed` left them."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> "VectorFolder":
        """The vectors in this folder, its manifest read, its files not yet."""
        folder = local_folder(folder)
        return cls(folder, read_manifest(folder, ARTIFACT))

    @property
    def address(self) -> str:
        """The folder as it is shown: by its address, if it is in a store."""
        return address_of(self.folder)

    @cached_property
    def config(self) -> VectorsConfig:
        """The settings they were made with."""
        return build(VectorsConfig, self.manifest["settings"])

    @property
    def files(self) -> list[Path]:
        """The files that hold vectors, in the order of the corpus."""
        files = self.manifest["files"]
        names = sorted(files.under(VECTORS) if isinstance(files, FileList) else files)
        return [self.folder / name for name in names if name.startswith(f"{VECTORS}/")]

    @property
    def num_bytes(self) -> int:
        """What the files weigh together."""
        return sum(described["bytes"] for described in self.manifest["files"].values())

    def damaged(self) -> list[str]:
        """Files that are missing or not as they were written; reads everything."""
        return list(damaged_files(self.folder, self.manifest))

    def read(self, words: Sequence[str] = (), *, limit: int | None = None) -> Any:
        """An Arrow table of the uses of some words, or of all; at most `limit` of them.

        Row groups without the words are skipped by their statistics where possible.
        """
        import pyarrow.dataset as ds

        columns = [*_KEYS, *self.manifest["columns"]]
        for path in self.files:
            try:
                with ParquetReader(path, columns) as reader:
                    for group in range(reader.num_row_groups):
                        reader.check(group)
            except (OSError, pa.ArrowException, ValueError) as error:
                raise VectorsError(f"{path} cannot be read: {error}. {ARTIFACT.remedy}") from error
        # As dictionaries whatever the file says, so that no word is unfolded a million times.
        form = ds.ParquetFileFormat(dictionary_columns=_TEXTS)
        try:
            rows = ds.dataset([str(path) for path in self.files], format=form)
            chosen = ds.field("word").isin(list(words)) if words else None
            if limit is None:
                return rows.to_table(columns, filter=chosen)
            return rows.head(limit, columns, filter=chosen)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise VectorsError(
                f"{self.folder} cannot be read: {error}. {ARTIFACT.remedy}"
            ) from error
