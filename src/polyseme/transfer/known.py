"""The words that a feed has vectors of its own for, and where those vectors come from.

in   the words of the data, and a file, a model, or nothing to begin with
out  `Known`: the words and characters, kept beside a task's weights; and the first vectors
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field

from polyseme.batches.alphabet import CODE_POINTS
from polyseme.config import Settings
from polyseme.errors import InputError
from polyseme.model import Model
from polyseme.transfer.wordfiles import WIDEST_VECTOR, Floats, Format, read_vectors

_CHUNK = 1024  # words whose characters are read at a time


class FileVectorsConfig(Settings):
    """Static vectors from a file of word2vec, GloVe or fastText."""

    kind: Literal["file"] = "file"
    path: Path
    """The file: word2vec's text or binary form, GloVe's, or fastText's .vec; may be gzipped."""
    form: Format = "auto"
    """Text or binary; `auto` looks at the first row."""
    common: int = Field(50_000, ge=0)
    """Also keep the first so many words of the file, usually the most frequent ones, so that words
    that are not in the data are known later."""


class ModelVectorsConfig(Settings):
    """Static vectors of a model of our own: its layer 0, the word without context."""

    kind: Literal["model"] = "model"
    model: Path
    """Folder of the model, as a word2vec or an ELMo made with `pretrain`."""
    common: int = Field(50_000, ge=0)
    """Also keep the so many most frequent words of its vocabulary."""


class NewVectorsConfig(Settings):
    """No vectors to begin with: random ones, learned in the task."""

    kind: Literal["new"] = "new"
    width: int = Field(100, ge=1, le=65_536)
    """Dimension."""


TableVectorsConfig = Annotated[
    FileVectorsConfig | ModelVectorsConfig | NewVectorsConfig, Field(discriminator="kind")
]


@dataclass(frozen=True)
class Known:
    """What must be kept beside the weights to read words with them again."""

    words: tuple[str, ...] = ()
    """Words with a row in the table, in the order of the rows."""
    characters: str = ""
    """Characters with a vector of their own."""
    width: int = 0
    """Dimension of the embedding table."""
    units: tuple[str, ...] = ()
    """Characters that labels stand at, with a vector of their own each, in the order of rows."""
    vectors: str = ""
    """SHA-256 of the vectors the words began with; empty where those were drawn by chance."""
    complaints: tuple[str, ...] = field(default=(), compare=False)
    """What was wrong with the file the vectors came from, in words."""

    def as_json(self) -> dict[str, Any]:
        """Plain values; `Known.from_json` takes them back."""
        return {
            "words": list(self.words),
            "characters": self.characters,
            "width": self.width,
            "units": list(self.units),
            "vectors": self.vectors,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Known":
        """The reverse of `as_json`."""
        words, units = tuple(values["words"]), tuple(values["units"])
        vectors = values.get("vectors", "")  # not in the first folders of this format
        characters, width = values["characters"], values["width"]
        if not all(isinstance(each, str) for each in (*words, *units, characters, vectors)):
            raise ValueError("a word, a character or a hash is no text")
        if not (isinstance(width, int) and 0 <= width <= WIDEST_VECTOR):
            raise ValueError(f"words have {str(width)[:40]} numbers, not 0 to {WIDEST_VECTOR:,}")
        if len(characters) > CODE_POINTS:
            raise ValueError(f"there are {len(characters):,} characters")
        return cls(words, characters, width, units, vectors)


def find_vectors(
    config: TableVectorsConfig, words: Iterable[str], *, lower_case: bool
) -> tuple[Known, Floats]:
    """The words of the data that have a vector, and those vectors (V, D).

    `lower_case`: also keep what may stand in for a word without a vector.
    """
    wanted = dict.fromkeys(words)
    if lower_case and config.kind != "new":  # a random vector can stand in for nothing
        wanted |= dict.fromkeys([word.lower() for word in wanted])
    match config:
        case FileVectorsConfig():
            return _hashed(*_of_file(config, wanted))
        case ModelVectorsConfig():
            return _hashed(*_of_model(config, wanted))
        case NewVectorsConfig():
            if not wanted:
                raise InputError("There is no word to learn a vector for: the data is empty.")
            drawn = torch.randn(len(wanted), config.width) * config.width**-0.5
            return Known(tuple(wanted), "", config.width), drawn.numpy()


def _hashed(known: Known, vectors: Floats) -> tuple[Known, Floats]:
    digest = hashlib.sha256(np.ascontiguousarray(vectors, np.float32).data).hexdigest()
    return replace(known, vectors=digest), vectors


def _of_file(config: FileVectorsConfig, wanted: Collection[str]) -> tuple[Known, Floats]:
    found = read_vectors(config.path, wanted, form=config.form, common=config.common)
    complaints = tuple(f"{config.path}: {each}" for each in found.account.complaints())
    width = found.vectors.shape[1]
    return Known(tuple(found.words), "", width, complaints=complaints), found.vectors


def _of_model(config: ModelVectorsConfig, wanted: Collection[str]) -> tuple[Known, Floats]:
    """Layer 0 of each word; a model without characters has it only for words with an id."""
    model = Model.load(config.model)
    common = model.lexicon.words[: config.common].to_pylist()
    words = list(dict.fromkeys([*wanted, *common]))
    if not model.config.encoder.widest_filter:
        has_id = frozenset(model.lexicon.words.to_pylist())
        words = [word for word in words if word in has_id]
    if not words:
        raise InputError(f"No word of the data is in the vocabulary of {config.model}.")
    encoder = model.network.encoder.eval()
    vectors = np.empty((len(words), model.config.encoder.context.width), np.float32)
    with torch.no_grad():
        for begin in range(0, len(words), _CHUNK):
            # Rows of a table begin with padding and marks, which no text has.
            table = model.lexicon.table_of(pa.array(words[begin : begin + _CHUNK], pa.string()))
            spellings = torch.from_numpy(table.spellings.astype(np.int64))
            found = encoder.inputs(torch.from_numpy(table.ids), spellings)
            vectors[begin : begin + _CHUNK] = found[-len(words[begin : begin + _CHUNK]) :].numpy()
    return Known(tuple(words), "", vectors.shape[1]), vectors
