"""The corpus folder: its manifest, and everything that reads a finished corpus.

A corpus is finished when `manifest.json` is there; it is written last. What it says of inputs,
settings and outputs is the same however the corpus was made: no times, no paths of a machine.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import NonNegativeInt
from typing_extensions import TypedDict

from polyseme.config import build
from polyseme.errors import CorpusError, InternalError
from polyseme.files import is_as_written
from polyseme.folders import check_holds, files_told
from polyseme.limits import read_json
from polyseme.shapes import FileFacts, check_shape
from polyseme.text.accounting import COUNTS, Accounting
from polyseme.text.prepare import FORMAT_VERSION
from polyseme.text.settings import CorpusConfig

MANIFEST = "manifest.json"
CONFIG = "config.toml"
VOCABULARY = "vocabulary.parquet"


class _Segmenter(TypedDict):
    name: str
    version: str


class _Preparation(TypedDict):
    format: int
    segmenter: _Segmenter
    script: Any


class _Counts(TypedDict):
    words: NonNegativeInt
    distinct_words: NonNegativeInt
    quarantine_reasons: dict[str, NonNegativeInt]
    sentence_lengths: dict[str, NonNegativeInt]


class _Manifest(TypedDict):
    """What is read of it. The other counts are held against these."""

    preparation: _Preparation
    settings: dict[str, Any]
    inputs: dict[str, int]
    accounting: _Counts
    files: dict[str, FileFacts]


@dataclass(frozen=True)
class Corpus:
    """A finished corpus. `Corpus.open(folder)` refuses anything else."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """The corpus in this folder, its manifest read, its files not yet."""
        path = folder / MANIFEST
        check_holds(folder, "corpus", "polyseme prepare TEXTS --language CODE", CorpusError)
        try:
            manifest = read_json(path)
            version = manifest["preparation"]["format"]
            if version == FORMAT_VERSION:
                check_shape(manifest, _Manifest)
                files_told(manifest)
                counts = manifest["accounting"]
                check_shape({name: counts[name] for name in COUNTS}, dict[str, NonNegativeInt])
                Accounting.total([counts]).check()
        except (OSError, ValueError, KeyError, TypeError, RecursionError, InternalError) as error:
            raise CorpusError(f"{path} is damaged: {error}. Run prepare again.") from error
        if version != FORMAT_VERSION:
            raise CorpusError(
                f"{folder} has corpus format {version}, this version of Polyseme reads "
                f"{FORMAT_VERSION}. Prepare it again, or use the version that made it."
            )
        return cls(folder, manifest)

    @cached_property
    def config(self) -> CorpusConfig:
        """The settings it was made with."""
        return build(CorpusConfig, self.manifest["settings"])

    @property
    def accounting(self) -> dict[str, Any]:
        """What was read, kept, cut and set aside."""
        accounting: dict[str, Any] = self.manifest["accounting"]
        return accounting

    @property
    def shards(self) -> list[Path]:
        """The shard files, in order."""
        return [self.folder / name for name in self.manifest["files"] if name.startswith("shards/")]

    @property
    def vocabulary(self) -> Path:
        """The table of words and counts."""
        return self.folder / VOCABULARY

    def check_files(self, on_file: Callable[[int], None] = lambda _: None) -> list[str]:
        """Names of files that are missing or not as they were written; reads everything."""
        damaged = []
        for number, (name, facts) in enumerate(self.manifest["files"].items(), start=1):
            if not is_as_written(self.folder / name, facts):
                damaged.append(name)
            on_file(number)
        return damaged


@contextlib.contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file of a corpus into a CorpusError that says what to do."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{path} is missing or damaged: {error}. Run the same prepare command again: it mends "
            "the corpus."
        ) from error
