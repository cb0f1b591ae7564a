"""Labels that stand at characters, vectors that stand at words: each character takes its word's.

    in   units     a sentence's characters, as Chinese names are labelled
    out  words     found in the joined characters as the model's were
         places    for each character the word it is in

A character also has a vector of its own, learned in the task.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from polyseme.batches.alphabet import Integers
from polyseme.batches.batch import Batch
from polyseme.config import Settings, build
from polyseme.errors import ModelError
from polyseme.model import preparation_of
from polyseme.text.clean import UnfitTextError, clean
from polyseme.text.running import RunningText
from polyseme.text.settings import CorpusConfig
from polyseme.transfer.fed import Reading
from polyseme.transfer.known import NewVectorsConfig
from polyseme.transfer.sentences import Sentences
from polyseme.transfer.words import WordsConfig


class UnitsConfig(Settings):
    """For data whose labels stand at characters, not at words."""

    words_like: Path
    """Model whose way of finding words is used on the joined characters."""
    width: int = Field(64, ge=1, le=65_536)
    """Numbers in each character's own vector."""
    hidden: float = Field(0.02, ge=0, lt=1)
    """Share of characters taken for unknown in training, so that new ones can be met later."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on them in training."""

    @property
    def table(self) -> WordsConfig:
        """The characters' own vectors, as a table of words."""
        return WordsConfig(
            vectors=NewVectorsConfig(width=self.width),
            trained=True,
            lower_case=False,
            hidden=self.hidden,
            dropout=self.dropout,
        )


class WordFinder:
    """Finds the words that units make up."""

    def __init__(self, config: UnitsConfig) -> None:
        preparation = preparation_of(config.words_like)
        if "settings" not in preparation:
            raise ModelError(
                f"{config.words_like} does not say how its text was split into words, so none can "
                "be found in joined characters. Name another model in feed.units.words_like."
            )
        self.preparation = preparation
        self._config = build(CorpusConfig, preparation["settings"])
        self._text = RunningText(preparation)

    def find(self, units: Sentences) -> "Spread":
        """The words of every sentence, and where each unit stands among them."""
        found = [self._find(each) for each in units.words]
        return Spread(Sentences(words for words, _ in found), [places for _, places in found])

    def _find(self, units: Sequence[str]) -> tuple[list[str], Integers]:
        # Unit by unit: cleaned as a whole, nobody could tell any more where a unit begins.
        cleaned = [self._cleaned(unit) for unit in units]
        ends = np.cumsum([len(unit) for unit in cleaned])
        words = self._text.words("".join(cleaned))
        if not words.words:  # white space only
            return list(units), np.arange(len(units))
        begins = ends - [len(unit) for unit in cleaned]
        # White space, which is in no word, goes with the word before it.
        places = np.searchsorted(words.starts, begins, side="right") - 1
        return words.words, np.maximum(places, 0).astype(np.int64)

    def _cleaned(self, unit: str) -> str:
        try:
            return clean(unit, self._config)[0]
        except UnfitTextError:
            return " "  # what no corpus holds, no model has a vector for


class Spread:
    """Sentences as words, and what takes vectors from words to units."""

    def __init__(self, sentences: Sentences, places: list[Integers]) -> None:
        self.sentences = sentences
        self._places = places

    def places(self, chosen: Integers) -> Tensor:
        """(B, T) the word of each unit; 0 at padding, which is masked later."""
        found = [torch.from_numpy(self._places[number]) for number in chosen]
        return torch.nn.utils.rnn.pad_sequence(found, batch_first=True)


def spread_batch(batch: Batch, places: Tensor, lengths: Tensor) -> Batch:
    """A batch of words as one of units, each of them its word."""
    is_unit = torch.arange(places.shape[1]) < lengths[:, None]
    return replace(batch, words=batch.words.gather(1, places) * is_unit, lengths=lengths)


def spread_layers(layers: Tensor, places: Tensor) -> Tensor:
    """(B, words, L, D) -> (B, units, L, D)"""
    return layers[torch.arange(len(layers))[:, None], places]


def spread_reading(reading: Reading, places: Tensor) -> Reading:
    """The same reading, with each unit's vector where its word's comes out."""
    return Reading(reading.batch, reading.places.gather(1, places))
