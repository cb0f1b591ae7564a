"""A finished folder of vectors: what it holds, and the vectors of a word.

Finished when `manifest.json` is there, which is written last. It tells the model and the corpus by
their hashes, so that vectors of two models are never taken for one another's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from typing_extensions import TypedDict

from polyseme.config import build
from polyseme.errors import VectorsError
from polyseme.files import is_as_written
from polyseme.folders import check_holds, files_told
from polyseme.limits import read_json
from polyseme.parquet import ParquetReader
from polyseme.shapes import FileFacts, check_shape
from polyseme.vectors.settings import VectorsConfig

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
CONFIG = "config.toml"
_TEXTS = {"sentence_id", "document", "word"}
_KEYS = ["sentence_id", "document", "position", "place", "word"]
_AGAIN = "Run the same embed command again: it mends them."


class _Counts(TypedDict):
    sentences: int
    sentences_embedded: int
    words_read: int
    vectors: int


class _Manifest(TypedDict):
    """What is read of it."""

    model: str
    settings: dict[str, Any]
    columns: list[str]
    width: int
    variance_kept: list[float]
    counts: _Counts
    files: dict[str, FileFacts]


@dataclass(frozen=True)
class VectorFolder:
    """Vectors as `polyseme embed` left them."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> "VectorFolder":
        """The vectors in this folder, its manifest read, its files not yet."""
        path = folder / MANIFEST
        check_holds(folder, "vectors", "polyseme embed MODEL CORPUS", VectorsError)
        try:
            manifest = read_json(path)
            version = manifest["vectors_format"]
            files_told(manifest)
            check_shape(manifest, _Manifest)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise VectorsError(
                f"{path} does not tell of vectors ({error}). Name a folder made by polyseme embed."
            ) from error
        if version != FORMAT_VERSION:
            raise VectorsError(
                f"{folder} has vectors of format {version}, this version of Polyseme reads "
                f"{FORMAT_VERSION}. Embed again, or use the version that made it."
            )
        return cls(folder, manifest)

    @cached_property
    def config(self) -> VectorsConfig:
        """The settings they were made with."""
        return build(VectorsConfig, self.manifest["settings"])

    @property
    def files(self) -> list[Path]:
        """The files that hold vectors, in the order of the corpus."""
        names = self.manifest["files"]
        return [self.folder / name for name in names if name.startswith("vectors/")]

    @property
    def num_bytes(self) -> int:
        """What the files weigh together."""
        return sum(told["bytes"] for told in self.manifest["files"].values())

    def damaged(self) -> list[str]:
        """Files that are missing or not as they were written; reads everything."""
        return [
            name
            for name, told in self.manifest["files"].items()
            if not is_as_written(self.folder / name, told)
        ]

    def read(self, words: Sequence[str] = (), *, limit: int | None = None) -> Any:
        """An Arrow table of the uses of some words, or of all; at most `limit` of them.

        Row groups without the words are skipped by their statistics where possible.
        """
        import pyarrow.dataset as ds

        if self.config.format != "parquet":
            raise VectorsError(f"{self.folder} holds hdf5; read its files with h5py.")
        columns = [*_KEYS, *self.manifest["columns"]]
        self._check_pages(columns)
        # As dictionaries whatever the file says, so that no word is unfolded a million times.
        form = ds.ParquetFileFormat(dictionary_columns=_TEXTS)
        try:
            rows = ds.dataset([str(path) for path in self.files], format=form)
            chosen = ds.field("word").isin(list(words)) if words else None
            if limit is None:
                return rows.to_table(columns, filter=chosen)
            return rows.head(limit, columns, filter=chosen)
        except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
            raise VectorsError(f"{self.folder} cannot be read: {error}. {_AGAIN}") from error

    def _check_pages(self, columns: Sequence[str]) -> None:
        for path in self.files:
            try:
                with ParquetReader(path, columns) as reader:
                    for group in range(reader.num_row_groups):
                        reader.check(group)
            except (OSError, pa.ArrowException, ValueError) as error:
                raise VectorsError(f"{path} cannot be read: {error}. {_AGAIN}") from error
