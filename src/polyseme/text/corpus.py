"""The corpus folder: its manifest, and everything that reads a finished corpus.

A corpus is finished when `manifest.json` is there; it is written last. What it says of inputs,
settings and outputs is the same however the corpus was made: no times, no paths of a machine.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NotRequired

import pyarrow as pa
from pydantic import NonNegativeInt
from typing_extensions import TypedDict

from polyseme.display import counted, html_table, summary
from polyseme.errors import CorpusError, InternalError, ModelError
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import (
    CONFIG,
    MANIFEST,
    ArtifactType,
    FileList,
    check_shape,
    damaged_files,
    read_manifest,
)
from polyseme.storage.remote_folders import address_of, local_folder
from polyseme.text.preprocessing import Preparation
from polyseme.text.records import COUNTS, ReadStats
from polyseme.text.settings import CorpusConfig

SHARDS, WORDS, QUARANTINE = "shards", "words", "quarantine"
VOCABULARY = "vocabulary.parquet"


class _ReadStatsShape(TypedDict):
    """What else is read of it; the other counts are checked by `ReadStats`."""

    distinct_words: NonNegativeInt
    quarantine_reasons: dict[str, NonNegativeInt]
    sentence_lengths: dict[str, NonNegativeInt]


class _CorpusManifest(TypedDict):
    """What is read of it."""

    preparation: dict[str, Any]
    inputs: dict[str, int]
    read_stats: _ReadStatsShape
    annotators: NotRequired[dict[str, dict[str, str]]]


ARTIFACT = ArtifactType(
    name="corpus",
    version=9,
    files=frozenset({CONFIG, VOCABULARY}),
    metadata_keys=("preparation", "annotators", "inputs", "passed_over", "read_stats"),
    older={
        7: ("preparation", "inputs", "shard_inputs", "passed_over", "read_stats"),
        8: ("preparation", "inputs", "passed_over", "read_stats"),
    },
    made_by="polyseme prepare TEXTS --language CODE",
    shape=_CorpusManifest,
    folders=frozenset({SHARDS, WORDS, QUARANTINE}),
    remedy="Run the same prepare command again: it repairs the corpus.",
    error=CorpusError,
)


@dataclass(frozen=True)
class Corpus:
    """A finished corpus. `Corpus.open(folder)` refuses anything else."""

    folder: Path
    manifest: dict[str, Any]
    preparation: Preparation
    """How its text became words."""

    @classmethod
    def open(cls, folder: str | PathLike[str], *, without_shards: bool = False) -> "Corpus":
        """The corpus in this folder, its manifest read, its files not yet.

        What is in a store is fetched, `without_shards` if workers fetch those that they need.
        """
        folder = local_folder(folder, without=(SHARDS, WORDS, QUARANTINE) if without_shards else ())
        manifest = read_manifest(folder, ARTIFACT)
        counts = manifest["read_stats"]
        try:
            preparation = Preparation.from_manifest(manifest["preparation"])
            check_shape({name: counts[name] for name in COUNTS}, dict[str, NonNegativeInt])
            ReadStats.total([counts]).check()
        except (ValueError, KeyError, InternalError) as error:
            raise ARTIFACT.damaged(folder, error) from error
        return cls(folder, manifest, preparation)

    def __fspath__(self) -> str:
        """Its folder: a corpus may be given wherever the path of one may."""
        return str(self.folder)

    @property
    def address(self) -> str:
        """Its folder as it is shown: where it was fetched from, if it was."""
        return address_of(self.folder)

    def __repr__(self) -> str:
        counts = self.read_stats
        return summary(
            f"Corpus {self.address}",
            self.config.language,
            counted(counts["documents"], "document"),
            counted(counts["sentences"], "sentence"),
            f"{counted(counts['words'], 'word')} ({counts['distinct_words']:,} distinct)",
        )

    def _repr_html_(self) -> str:
        names = ("documents", "sentences", "words", "distinct_words", "held_out_words")
        rows = [(name.replace("_", " "), self.read_stats[name]) for name in names]
        return html_table(f"Corpus {self.address}", [("language", self.config.language), *rows])

    def check_same_words(self, preparation: Preparation | None, or_else: str = "") -> None:
        """Refuse to be read by a model whose words were found in another way.

        `or_else` is what one could do besides, as an end of the error.
        """
        if preparation is None:  # it does not say: whoever prepared the corpus has chosen
            return
        if differs := preparation.difference(self.preparation):
            own, here = differs
            raise ModelError(
                f"The model reads {own}; {self.folder} has {here}. Name a model that was trained "
                "on such words, or prepare the texts again as the model's were: polyseme prepare "
                f"TEXTS {preparation.options} --out NEW_CORPUS{or_else}"
            )

    @property
    def config(self) -> CorpusConfig:
        """The settings it was made with."""
        return self.preparation.settings

    @property
    def read_stats(self) -> dict[str, Any]:
        """What was read, kept, split and quarantined."""
        read_stats: dict[str, Any] = self.manifest["read_stats"]
        return read_stats

    @property
    def annotators(self) -> dict[str, dict[str, str]]:
        """What added word attributes, by attribute: its name, and its version or hash.

        Corpora of format 8 and before do not say.
        """
        found: dict[str, dict[str, str]] = self.manifest.get("annotators", {})
        return found

    @property
    def shards(self) -> list[Path]:
        """The shard files, in order."""
        return [self.folder / name for name, _ in self.described_shards()]

    def described_shards(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The shards in order, each with what the manifest has of it."""
        files: Mapping[str, Any] = self.manifest["files"]
        if isinstance(files, FileList):
            files = files.under(SHARDS)
        return ((name, each) for name, each in files.items() if name.startswith(f"{SHARDS}/"))

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of all files, by name; of very many, that of their table vouches for them."""
        files = self.manifest["files"]
        own = files.own if isinstance(files, FileList) else files
        return {name: each["sha256"] for name, each in own.items()}

    @property
    def vocabulary(self) -> Path:
        """The table of words and counts."""
        return self.folder / VOCABULARY

    def check_files(self, on_file: Callable[[int], None] = lambda _: None) -> list[str]:
        """Names of files that are missing or not as they were written; reads everything."""
        return list(damaged_files(self.folder, self.manifest, on_file))


def state_of(corpus: Corpus) -> str:
    """A hash of a corpus as it is now."""
    return sha256_of(corpus.folder / MANIFEST)


def words_of(shard: Path) -> Path:
    """Where the words of a shard are that `ShardWords` reads."""
    return shard.parent.parent / WORDS / f"{shard.stem}.npy"


def beside(folder: Path, ending: str) -> Path:
    """Where what belongs to a corpus is kept that is no part of it: `NAME.ending` beside it."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.{ending}")


@contextlib.contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file of a corpus into a CorpusError that says what to do."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"{path} is missing or damaged: {error}. {ARTIFACT.remedy}") from error
