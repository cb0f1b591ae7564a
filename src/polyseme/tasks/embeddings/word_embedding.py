"""Static vectors, the task's x: from a table, from a character CNN, or both concatenated.

    in   the batch's distinct words: rows of the table and characters
    out  vectors (B, T, D), the same for a word wherever it stands

The table begins with vectors of a file or a model, or at random. All words without a row share one
learned vector, also where the table itself is fixed; or each has one of its own, drawn from its
spelling, so that what a question asks for is found in a text (Dhingra et al. 2017).
`EmbeddingVocabulary` is kept beside a task's weights: which words and characters have a vector.
"""

import hashlib
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.data.batch import (
    CODE_POINTS,
    FIRST_ROW,
    Batch,
    CharVocabulary,
    Integers,
    WordTable,
    pad,
)
from polyseme.encoders.inputs import CharacterEncoder, CharactersConfig, FilterConfig
from polyseme.errors import InputError
from polyseme.model import Model
from polyseme.tasks.embeddings.features import ByteDropout, Sentences
from polyseme.tasks.embeddings.vector_files import (
    WIDEST_VECTOR,
    FileFormat,
    VectorArray,
    read_vectors,
)

_NO_ROW = 0  # row n of the table has id n + 1
_CHUNK = 1024  # words whose characters are read at a time


class FileVectorsConfig(Settings):
    """Static vectors from a file of word2vec, GloVe or fastText."""

    kind: Literal["file"] = "file"
    path: Path
    """The file: word2vec's text or binary format, GloVe's, or fastText's .vec; may be gzipped."""
    file_format: FileFormat = "auto"
    """Text or binary; `auto` looks at the first row."""
    extra_words: int = Field(50_000, ge=0)
    """Also keep this many words from the start of the file, usually the most frequent ones, so that
    words that are not in the data have a vector later."""


class ModelVectorsConfig(Settings):
    """Static vectors of a model of our own: its layer 0, the word without context."""

    kind: Literal["model"] = "model"
    model: Path
    """Folder of the model, as a word2vec or an ELMo made with `pretrain`."""
    extra_words: int = Field(50_000, ge=0)
    """Also keep this many of the most frequent words of its vocabulary."""


class NewVectorsConfig(Settings):
    """Randomly initialized vectors, learned in the task."""

    kind: Literal["new"] = "new"
    dim: int = Field(100, ge=1, le=65_536)
    """Dimension."""


TableVectorsConfig = Annotated[
    FileVectorsConfig | ModelVectorsConfig | NewVectorsConfig, Field(discriminator="kind")
]


class CharacterCnnConfig(Settings):
    """A character CNN: vectors made from a word's characters, learned in the task."""

    vocabulary: Literal["unicode", "bytes"] = "unicode"
    """Characters of the training data, or the bytes of UTF-8."""
    max_characters: int = Field(50, ge=4, le=1_000)
    """Maximum characters read per word, including the markers of its begin and end."""
    cnn: CharactersConfig = CharactersConfig(
        char_dim=25,
        filters=(FilterConfig(width=3, num_filters=50),),
        num_highway_layers=0,
        dim=50,
        projected=False,
    )
    """The convolution over them. The default is small, as in taggers before ELMo."""

    @model_validator(mode="after")
    def _filters_fit(self) -> "CharacterCnnConfig":
        if self.cnn.widest > self.max_characters:
            raise ValueError(
                f"a filter {self.cnn.widest} characters wide needs max_characters of at least "
                f"as many, not {self.max_characters}"
            )
        return self


class WordEmbeddingConfig(Settings):
    """What a task knows of a word without its sentence."""

    vectors: TableVectorsConfig | None = None
    """Where the table comes from; without it there is none."""
    trained: bool = False
    """Whether the table is trained further or stays frozen."""
    lower_case: bool = True
    """Whether a word without a vector takes that of its lower-case spelling, if there is one."""
    unknown: Literal["shared", "own"] = "shared"
    """Words without a vector share one, or each has its own: the shared vector plus noise seeded by
    the word's spelling, so the same everywhere."""
    unk_dropout: float = Field(0.0, ge=0, lt=1)
    """Fraction of words replaced by the unknown word in training, so that its vector is learned
    even if the training data has none."""
    characters: CharacterCnnConfig | None = None
    """Vectors from a character CNN; without it there are none."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout in training."""

    @model_validator(mode="after")
    def _is_something(self) -> "WordEmbeddingConfig":
        if self.vectors is None and self.characters is None:
            raise ValueError("words need vectors, characters, or both")
        if self.vectors is not None and self.vectors.kind == "new" and not self.trained:
            raise ValueError("new vectors are random: set trained = true")
        return self


@dataclass(frozen=True)
class EmbeddingVocabulary:
    """What must be kept beside the weights to read words with them again."""

    words: tuple[str, ...] = ()
    """Words with a row in the table, in the order of the rows."""
    characters: str = ""
    """Characters with a vector of their own."""
    dim: int = 0
    """Dimension of the embedding table."""
    labelled_characters: tuple[str, ...] = ()
    """Characters that labels stand at, with a vector of their own each, in the order of rows."""
    vectors_sha256: str = ""
    """Of the vectors the words began with; empty where those were drawn at random."""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What was wrong with the file the vectors came from, in words."""

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` takes them back."""
        return {
            "words": list(self.words),
            "characters": self.characters,
            "dim": self.dim,
            "labelled_characters": list(self.labelled_characters),
            "vectors_sha256": self.vectors_sha256,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "EmbeddingVocabulary":
        """The reverse of `as_json`."""
        words, labelled = tuple(values["words"]), tuple(values["labelled_characters"])
        characters, dim, digest = (values[name] for name in ("characters", "dim", "vectors_sha256"))
        if not all(isinstance(each, str) for each in (*words, *labelled, characters, digest)):
            raise ValueError("a word, a character or a hash is not text")
        if not (isinstance(dim, int) and 0 <= dim <= WIDEST_VECTOR):
            raise ValueError(f"vectors have {str(dim)[:40]} dimensions, not 0 to {WIDEST_VECTOR:,}")
        if len(characters) > CODE_POINTS:
            raise ValueError(f"there are {len(characters):,} characters")
        return cls(words, characters, dim, labelled, digest)


class WordEmbedding(nn.Module):
    """The table and the character CNN, as one module."""

    def __init__(self, config: WordEmbeddingConfig, vocabulary: EmbeddingVocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        self.table: nn.Parameter | None = None
        self.unknown: nn.Parameter | None = None
        self.characters: CharacterEncoder | None = None
        if config.vectors is not None:
            shape = (len(vocabulary.words), vocabulary.dim)
            self.table = nn.Parameter(torch.zeros(shape), requires_grad=config.trained)
            self.unknown = nn.Parameter(torch.zeros(vocabulary.dim))
        limit = config.characters.max_characters if config.characters else 4
        kind = config.characters.vocabulary if config.characters else "none"
        self._chars = CharVocabulary(kind, limit, vocabulary.characters)
        if config.characters is not None:
            number = self._chars.num_characters
            self.characters = CharacterEncoder(config.characters.cnn, num_chars=number)
        self.dropout = ByteDropout(config.dropout)
        self._rows = {word: row for row, word in enumerate(vocabulary.words, start=_NO_ROW + 1)}

    @classmethod
    def new(cls, config: WordEmbeddingConfig, words: Iterable[str]) -> "WordEmbedding":
        """With the vectors that the settings name, for those of the data's words that have one.

        For vectors learned in the task give words of the training data only: others would keep
        the random vector they began with. What is drawn depends on torch's seed.
        """
        distinct = list(dict.fromkeys(words))
        vocabulary, vectors = EmbeddingVocabulary(), None
        if config.vectors is not None:
            vocabulary, vectors = find_vectors(
                config.vectors, distinct, lower_case=config.lower_case
            )
        characters = ""
        if config.characters is not None and config.characters.vocabulary == "unicode":
            characters = "".join(sorted(set("".join(distinct))))
        vocabulary = replace(vocabulary, characters=characters)
        module = cls(config, vocabulary)
        if module.table is not None and module.unknown is not None and vectors is not None:
            with torch.no_grad():
                module.table.copy_(torch.from_numpy(vectors))
                # The mean of all: a word of which nothing is known, and no outlier.
                module.unknown.copy_(module.table.mean(dim=0))
        return module

    @property
    def dim(self) -> int:
        """Dimension."""
        characters = self.config.characters
        return self.vocabulary.dim + (characters.cnn.dim if characters else 0)

    def source(self, sentences: Sentences) -> "WordSource":
        """A data set, each of its distinct words looked up once."""
        words = sentences.distinct
        ids = np.fromiter((self._row(word) for word in words.to_pylist()), np.int64, len(words))
        ids = np.concatenate([np.full(FIRST_ROW, _NO_ROW), ids])
        char_ids = np.concatenate(
            [self._chars.special_tokens()[:FIRST_ROW], self._chars.char_ids(words)]
        )
        table = WordTable(ids, char_ids, self._chars.char_lengths(char_ids))
        return WordSource(sentences, table)

    def _row(self, word: str) -> int:
        row = self._rows.get(word, _NO_ROW)
        if row == _NO_ROW and self.config.lower_case:
            row = self._rows.get(word.lower(), _NO_ROW)
        if row == _NO_ROW and self.config.unknown == "own":
            return -1 - zlib.crc32(word.encode())
        return row

    def forward(self, batch: Batch) -> Tensor:
        """(B, T, D)"""
        parts = []
        if self.table is not None:
            parts.append(self._look_up(batch.ids))
        if self.characters is not None:
            parts.append(self.characters(batch.char_ids))
        distinct = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]  # (U, D)
        vectors: Tensor = self.dropout(functional.embedding(batch.words, distinct))
        return vectors

    def _look_up(self, ids: Tensor) -> Tensor:
        assert self.table is not None
        assert self.unknown is not None
        if self.training and self.config.unk_dropout:
            is_unknown = torch.rand(len(ids), device=ids.device) < self.config.unk_dropout
            other = _NO_ROW if self.config.unknown == "shared" else -1 - ids.abs()
            ids = torch.where(is_unknown, other, ids)
        rows = functional.embedding((ids - 1).clamp(min=0), self.table)
        found = torch.where((ids <= _NO_ROW)[:, None], self.unknown, rows)
        own = (ids < _NO_ROW).nonzero()[:, 0]
        if not len(own):
            return found
        drawn = np.stack([_draw(seed, self.vocabulary.dim) for seed in (-ids[own]).tolist()])
        # As far from each other as words of the table are.
        spread = self.table[:_CHUNK].detach().std(dim=0, correction=0)
        return found.index_add(0, own, torch.from_numpy(drawn).to(found) * spread)


def _draw(seed: int, dim: int) -> VectorArray:
    """(D,) standard normal, always the same for a seed."""
    return np.random.default_rng(seed).standard_normal(dim, np.float32)


class WordSource:
    """The words of a data set, as rows of the table and as characters."""

    def __init__(self, sentences: Sentences, table: WordTable) -> None:
        self._sentences, self._table = sentences, table

    def gather(self, chosen: Integers) -> Batch:
        """A batch without special tokens."""
        starts, lengths = self._sentences.starts[chosen], self._sentences.lengths[chosen]
        return self._table.batch(pad(self._sentences.rows, starts, lengths), lengths)


def find_vectors(
    config: TableVectorsConfig, words: Iterable[str], *, lower_case: bool
) -> tuple[EmbeddingVocabulary, VectorArray]:
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
            drawn = torch.randn(len(wanted), config.dim) * config.dim**-0.5
            return EmbeddingVocabulary(tuple(wanted), "", config.dim), drawn.numpy()


def _hashed(
    vocabulary: EmbeddingVocabulary, vectors: VectorArray
) -> tuple[EmbeddingVocabulary, VectorArray]:
    digest = hashlib.sha256(np.ascontiguousarray(vectors, np.float32).data).hexdigest()
    return replace(vocabulary, vectors_sha256=digest), vectors


def _of_file(
    config: FileVectorsConfig, wanted: Collection[str]
) -> tuple[EmbeddingVocabulary, VectorArray]:
    found = read_vectors(
        config.path, wanted, file_format=config.file_format, extra_words=config.extra_words
    )
    warnings = tuple(f"{config.path}: {each}" for each in found.stats.warnings())
    dim = found.vectors.shape[1]
    return EmbeddingVocabulary(tuple(found.words), "", dim, warnings=warnings), found.vectors


def _of_model(
    config: ModelVectorsConfig, wanted: Collection[str]
) -> tuple[EmbeddingVocabulary, VectorArray]:
    """Layer 0 of each word; a model without characters has it only for words with an id."""
    model = Model.load(config.model)
    extra_words = model.vocabulary.words[: config.extra_words].to_pylist()
    words = list(dict.fromkeys([*wanted, *extra_words]))
    if not model.config.encoder.widest_filter:
        has_id = frozenset(model.vocabulary.words.to_pylist())
        words = [word for word in words if word in has_id]
    if not words:
        raise InputError(f"No word of the data is in the vocabulary of {config.model}.")
    encoder = model.network.encoder.eval()
    vectors = np.empty((len(words), model.config.encoder.contextualizer.dim), np.float32)
    with torch.no_grad():
        for begin in range(0, len(words), _CHUNK):
            # Rows of a table begin with padding and special tokens, which no text has.
            table = model.vocabulary.table_of(pa.array(words[begin : begin + _CHUNK], pa.string()))
            char_ids = torch.from_numpy(table.char_ids.astype(np.int64))
            found = encoder.inputs(torch.from_numpy(table.ids), char_ids)
            vectors[begin : begin + _CHUNK] = found[-len(words[begin : begin + _CHUNK]) :].numpy()
    return EmbeddingVocabulary(tuple(words), "", vectors.shape[1]), vectors
