"""Static vectors as a task's x: from a table, from characters, or both one after the other.

    in   the batch's distinct words: rows of the table and characters
    out  vectors (B, T, D), the same for a word wherever it stands

All words without a row share one learned vector, also where the table itself is fixed.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.batches.alphabet import Alphabet, Integers
from polyseme.batches.batch import Batch
from polyseme.batches.table import FIRST_ROW, WordTable, pad
from polyseme.config import Settings
from polyseme.encoders.characters import CharacterEncoder, CharactersConfig, FilterConfig
from polyseme.transfer.dropout import ByteDropout
from polyseme.transfer.known import Known, TableVectorsConfig, find_vectors
from polyseme.transfer.sentences import Sentences

_NO_ROW = 0  # row n of the table has id n + 1


class SpellingConfig(Settings):
    """Vectors made from a word's characters, learned in the task."""

    alphabet: Literal["unicode", "bytes"] = "unicode"
    """Characters of the training data, or the bytes of UTF-8."""
    max_characters: int = Field(50, ge=4, le=1_000)
    """Longest spelling that is read, both word marks counted."""
    filters: CharactersConfig = CharactersConfig(
        character_width=25,
        filters=(FilterConfig(width=3, number=50),),
        highways=0,
        width=50,
        projected=False,
    )
    """The convolution over them. The default is small, as in taggers before ELMo."""

    @model_validator(mode="after")
    def _filters_fit(self) -> "SpellingConfig":
        if self.filters.widest > self.max_characters:
            raise ValueError(
                f"a filter {self.filters.widest} characters wide needs max_characters of at least "
                f"as many, not {self.max_characters}"
            )
        return self


class WordsConfig(Settings):
    """What a task knows of a word without its sentence."""

    vectors: TableVectorsConfig | None = None
    """Where the table comes from; without it there is none."""
    trained: bool = False
    """Whether the table is trained further, or stays as it was read."""
    lower_case: bool = True
    """Whether a word without a vector takes that of its lower-case spelling, if there is one."""
    hidden: float = Field(0.0, ge=0, lt=1)
    """Share of words that are taken for unknown in training, so that the vector of unknown words is
    learned where the training data has none."""
    spelling: SpellingConfig | None = None
    """Vectors from characters; without it there are none."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout in training."""

    @model_validator(mode="after")
    def _is_something(self) -> "WordsConfig":
        if self.vectors is None and self.spelling is None:
            raise ValueError("words need vectors, spelling, or both")
        if self.vectors is not None and self.vectors.kind == "new" and not self.trained:
            raise ValueError("new vectors are random: set trained = true")
        return self


class Words(nn.Module):
    """The table and the characters, as one module."""

    def __init__(self, config: WordsConfig, known: Known) -> None:
        super().__init__()
        self.config, self.known = config, known
        self.table: nn.Parameter | None = None
        self.unknown: nn.Parameter | None = None
        self.characters: CharacterEncoder | None = None
        if config.vectors is not None:
            shape = (len(known.words), known.width)
            self.table = nn.Parameter(torch.zeros(shape), requires_grad=config.trained)
            self.unknown = nn.Parameter(torch.zeros(known.width))
        limit = config.spelling.max_characters if config.spelling else 4
        kind = config.spelling.alphabet if config.spelling else "none"
        self._alphabet = Alphabet(kind, limit, known.characters)
        if config.spelling is not None:
            number = self._alphabet.num_characters
            self.characters = CharacterEncoder(config.spelling.filters, alphabet=number)
        self.dropout = ByteDropout(config.dropout)
        self._rows = {word: row for row, word in enumerate(known.words, start=_NO_ROW + 1)}

    @classmethod
    def new(cls, config: WordsConfig, words: Iterable[str]) -> "Words":
        """With the vectors that the settings name, for those of the data's words that have one.

        For vectors learned in the task give words of the training data only: others would keep
        the random vector they began with. What is drawn depends on torch's seed.
        """
        distinct = list(dict.fromkeys(words))
        known, vectors = Known(), None
        if config.vectors is not None:
            known, vectors = find_vectors(config.vectors, distinct, lower_case=config.lower_case)
        characters = ""
        if config.spelling is not None and config.spelling.alphabet == "unicode":
            characters = "".join(sorted(set("".join(distinct))))
        known = replace(known, characters=characters)
        module = cls(config, known)
        if module.table is not None and module.unknown is not None and vectors is not None:
            with torch.no_grad():
                module.table.copy_(torch.from_numpy(vectors))
                # The mean of all: a word of which nothing is known, and no outlier.
                module.unknown.copy_(module.table.mean(dim=0))
        return module

    @property
    def width(self) -> int:
        """Dimension."""
        spelling = self.config.spelling
        return self.known.width + (spelling.filters.width if spelling else 0)

    def source(self, sentences: Sentences) -> "WordSource":
        """A data set, each of its distinct words looked up once."""
        words = sentences.distinct
        ids = np.fromiter((self._row(word) for word in words.to_pylist()), np.int64, len(words))
        ids = np.concatenate([np.full(FIRST_ROW, _NO_ROW), ids])
        spellings = np.concatenate(
            [self._alphabet.marks()[:FIRST_ROW], self._alphabet.spell(words)]
        )
        table = WordTable(ids, spellings, self._alphabet.spelling_lengths(spellings))
        return WordSource(sentences, table)

    def _row(self, word: str) -> int:
        row = self._rows.get(word, _NO_ROW)
        if row == _NO_ROW and self.config.lower_case:
            return self._rows.get(word.lower(), _NO_ROW)
        return row

    def forward(self, spelt: Batch) -> Tensor:
        """(B, T, D)"""
        parts = []
        if self.table is not None:
            parts.append(self._look_up(spelt.ids))
        if self.characters is not None:
            parts.append(self.characters(spelt.characters))
        distinct = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]  # (U, D)
        vectors: Tensor = self.dropout(functional.embedding(spelt.words, distinct))
        return vectors

    def _look_up(self, ids: Tensor) -> Tensor:
        assert self.table is not None
        assert self.unknown is not None
        if self.training and self.config.hidden:
            is_hidden = torch.rand(len(ids), device=ids.device) < self.config.hidden
            ids = ids.masked_fill(is_hidden, _NO_ROW)
        rows = functional.embedding((ids - 1).clamp(min=0), self.table)
        return torch.where((ids == _NO_ROW)[:, None], self.unknown, rows)


class WordSource:
    """The words of a data set, as rows of the table and as spellings."""

    def __init__(self, sentences: Sentences, table: WordTable) -> None:
        self._sentences, self._table = sentences, table

    def gather(self, chosen: Integers) -> Batch:
        """A batch without marks."""
        starts, lengths = self._sentences.starts[chosen], self._sentences.lengths[chosen]
        return self._table.batch(pad(self._sentences.rows, starts, lengths), lengths)
