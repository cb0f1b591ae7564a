"""An index on disk: the features of the uses of many words, sorted by word.

    manifest.json                of which model and corpus, and the hashes of all files
    data/words-KEY.parquet       each word: its uses in the corpus, those kept here, their SHA-256,
                                 the number of its range
    uses/KEY-NUMBER.bin          a range of words: a row for each use, those of one word together
                                 (`row_type`); in format 3 all are in data/uses-KEY.bin
    data/sentences-KEY.npy       the sentences they are in, in the order of the corpus, as records
    data/vocabulary-KEY.npy      what the numbers of words in sentences stand for
    data/values-KEY.npy          what the numbers of documents and metadata stand for
    data/parts-KEY.parquet       for each row group of the corpus its first sentence and value here
    data/substitutes-KEY.parquet what the numbers of substitutes stand for

Everything is mapped. A question is about one word, so its answer is one slice, read as a whole and
held against its hash. KEY is another one for another model, corpus or choice of words: a new index
is made beside the old one, and a reader that has begun goes on with its own.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from pydantic import NonNegativeInt
from typing_extensions import TypedDict

from polyseme.errors import UseIndexError
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import (
    FILES,
    MANIFEST,
    ArtifactType,
    damaged_files,
    read_manifest,
)
from polyseme.storage.parquet import ParquetReader
from polyseme.storage.records import record_files
from polyseme.storage.remote_folders import address_of, local_folder
from polyseme.text.corpus import Corpus

DATA, USES, PARTS = "data", "uses", "parts"
"""Folders: of the finished index, and of what it is being made from."""
WORDS, RANGES = "words.parquet", "ranges.parquet"
"""The chosen words and their ranges, while an index is being made."""
_TABLES = ("words", "parts", "substitutes", "syntax")
_RECORDS = ("sentences", "vocabulary", "values")
_Dim = Annotated[int, Ge(1), Le(65_536)]


class RowShape(TypedDict):
    """How long the arrays of a row are."""

    context: _Dim
    bag: _Dim
    substitutes: Annotated[int, Ge(0), Le(65_536)]


class _IndexCounts(TypedDict):
    sentences: NonNegativeInt
    sentences_kept: NonNegativeInt
    words_read: NonNegativeInt
    uses: NonNegativeInt


COUNTS = tuple(_IndexCounts.__annotations__)
"""What is counted in each part and told of all."""


class _IndexManifest(TypedDict):
    """What is read of it."""

    model: str
    corpus: str
    key: str
    settings: dict[str, Any]
    shape: RowShape
    columns: list[str]
    counts: _IndexCounts


_METADATA = (
    *("model", "corpus", "key", "settings", "environments", "shape", "columns"),
    "counts",
)
ARTIFACT = ArtifactType(
    name="index",
    version=4,
    files=frozenset(),
    metadata_keys=_METADATA,
    older={3: _METADATA},
    made_by="polyseme index CORPUS --model MODEL",
    shape=_IndexManifest,
    folders=frozenset({DATA, USES}),
    remedy="Run the same index command again: it repairs it.",
    error=UseIndexError,
)


def row_type(shape: RowShape) -> np.dtype[Any]:
    """A use: its word, its sentence, which word of that it is, and its features."""
    return np.dtype(
        [
            ("word", "<i4"),
            ("begin", "<i4"),
            ("sentence", "<i8"),
            ("context", "<f2", (shape["context"],)),
            ("bag", "<f2", (shape["bag"],)),
            ("substitutes", "<u2", (shape["substitutes"],)),
        ]
    )


def range_file(key: str, number: int) -> str:
    """The uses of a range of words."""
    return f"{key}-{number:05d}.bin"


def file_names(key: str) -> list[str]:
    """All files of an index but its manifest and those with its uses."""
    tables = [f"{name}-{key}.parquet" for name in _TABLES]
    records = [file for name in _RECORDS for file in record_files(f"{name}-{key}")]
    return [f"{DATA}/{name}" for name in (*tables, *records)]


@dataclass(frozen=True)
class IndexFolder:
    """A finished index, its manifest read."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> "IndexFolder":
        """What `polyseme index` left; an error if that is unfinished or not as long as it was."""
        folder = local_folder(folder)
        manifest = read_manifest(folder, ARTIFACT)
        files = manifest["files"]
        found = cls(folder, manifest)
        if set(files) - {FILES} != {*file_names(manifest["key"]), *found.uses_files}:
            raise ARTIFACT.damaged(folder, "it does not name the files of an index")
        return found

    @property
    def uses_files(self) -> list[str]:
        """The files with the uses of each range of words, in their order."""
        key, files = self.manifest["key"], self.manifest["files"]
        if self.manifest["format"] == 3:
            return [f"{DATA}/uses-{key}.bin"]
        number = len(set(files) - {FILES, *file_names(key)})
        return [f"{USES}/{range_file(key, each)}" for each in range(number)]

    @property
    def address(self) -> str:
        """The folder as it is shown: by its address, if it is in a store."""
        return address_of(self.folder)

    def path(self, name: str, suffix: str = "") -> Path:
        """A file, or the files of records without their endings."""
        return self.folder / DATA / f"{name}-{self.manifest['key']}{suffix}"

    def check_table(self, name: str) -> Path:
        """A small file, held against its hash; FileNotFoundError if an index took its place."""
        path = self.path(name, ".parquet")
        if sha256_of(path) != self.manifest["files"][f"{DATA}/{path.name}"]["sha256"]:
            raise self.damaged(f"{path.name} is not as it was written")
        return path

    def damaged(self, reason: object) -> UseIndexError:
        """The error for a file that cannot be believed."""
        return UseIndexError(f"{self.folder} is damaged: {reason}. {ARTIFACT.remedy}")

    @property
    def num_words(self) -> int:
        """How many words it has."""
        with ParquetReader(self.check_table("words")) as reader:
            return int(reader.metadata.num_rows)

    @property
    def num_bytes(self) -> int:
        """What the files weigh together."""
        return sum(described["bytes"] for described in self.manifest["files"].values())

    def damaged_files(self) -> list[str]:
        """Files that are missing or not as they were written; reads everything."""
        return list(damaged_files(self.folder, self.manifest))

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus that this is not the index of."""
        if sha256_of(corpus.folder / MANIFEST) != self.manifest["corpus"]:
            raise UseIndexError(
                f"{self.folder} is not an index of {corpus.folder} as it is now: it is of another "
                "corpus, or the corpus has changed. Rebuild the index (polyseme index with "
                "--replace), or leave it out."
            )

    def check_model(self, fingerprint: str, name: object) -> None:
        """Refuse a model that this was not made with."""
        if fingerprint != self.manifest["model"]:
            raise UseIndexError(
                f"{self.folder} was made with another model than {name}, or before that model was "
                "trained further. Rebuild the index (polyseme index with --replace), or leave it "
                "out."
            )
