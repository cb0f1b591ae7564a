"""Labels that stand at characters, vectors that stand at words: each character takes its word's.

    in   characters   of a sentence, as Chinese names are labelled
    out  words        found in the joined characters as the model's were
         alignment    for each character the word it is in

A character also has a vector of its own, learned in the task.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.char_vocabulary import Integers
from polyseme.embedding.loading import preparation_from
from polyseme.tasks.embeddings.features import EncoderInput, FeatureBatch, Sentences
from polyseme.tasks.embeddings.word_embedding import NewVectorsConfig, WordEmbeddingConfig
from polyseme.text.normalization import UnfitTextError
from polyseme.text.preprocessing import TextPreprocessor


class CharacterLabelsConfig(Settings):
    """For data whose labels stand at characters, not at words."""

    tokenizer_from: Path
    """Segmentation of the joined characters into words: that of the model or the corpus in a
    folder, or of a language (zh)."""
    dim: int = Field(64, ge=1, le=65_536)
    """Dimension of each character's own vector."""
    unk_dropout: float = Field(0.02, ge=0, lt=1)
    """Fraction of characters replaced by the unknown one in training, to prepare for new ones."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Dropout on their vectors in training."""

    @property
    def table(self) -> WordEmbeddingConfig:
        """The characters' own vectors, as a table of words."""
        return WordEmbeddingConfig(
            vectors=NewVectorsConfig(dim=self.dim),
            trained=True,
            lower_case=False,
            unk_dropout=self.unk_dropout,
            dropout=self.dropout,
        )


class WordAligner:
    """Finds the words that characters make up."""

    def __init__(self, config: CharacterLabelsConfig) -> None:
        self.preparation = preparation_from(config.tokenizer_from)
        self._preprocessor = TextPreprocessor.of_model(self.preparation)

    def align(self, characters: Sentences) -> "WordAlignment":
        """The words of every sentence, and the word of each character."""
        found = [self._align(each) for each in characters.words]
        return WordAlignment(
            Sentences(words for words, _ in found), [word_of for _, word_of in found]
        )

    def _align(self, characters: Sequence[str]) -> tuple[list[str], Integers]:
        # One by one: normalized as a whole, nobody could tell any more where a character begins.
        normalized = [self._normalize(character) for character in characters]
        ends = np.cumsum([len(character) for character in normalized])
        words = self._preprocessor.split_words("".join(normalized))
        if not words.words:  # white space only
            return list(characters), np.arange(len(characters))
        begins = ends - [len(character) for character in normalized]
        # White space, which is in no word, goes with the word before it.
        word_of = np.searchsorted(words.starts, begins, side="right") - 1
        return words.words, np.maximum(word_of, 0).astype(np.int64)

    def _normalize(self, character: str) -> str:
        try:
            return self._preprocessor.normalize(character)[0]
        except UnfitTextError:
            return " "  # what no corpus holds, no model has a vector for


class WordAlignment:
    """Sentences as words, and what takes vectors from words to their characters."""

    def __init__(self, sentences: Sentences, word_of: list[Integers]) -> None:
        self.sentences = sentences
        self._word_of = word_of

    def word_of(self, chosen: Integers) -> Tensor:
        """(B, T) the word of each character; 0 at padding, which is masked later."""
        found = [torch.from_numpy(self._word_of[number]) for number in chosen]
        return torch.nn.utils.rnn.pad_sequence(found, batch_first=True)

    def apply(self, features: FeatureBatch, chosen: Integers) -> FeatureBatch:
        """What stands at the words of these sentences, at the characters that make them up."""
        word_of = self.word_of(chosen)
        words, layers, encoder_input = features.words, features.layers, features.encoder_input
        return replace(
            features,
            words=None if words is None else _align_batch(words, word_of, features.lengths),
            layers=None if layers is None else _align_layers(layers, word_of),
            encoder_input=encoder_input and _align_encoder_input(encoder_input, word_of),
        )


def _align_batch(batch: Batch, word_of: Tensor, lengths: Tensor) -> Batch:
    """A batch of words as one of characters, each of them its word."""
    is_character = torch.arange(word_of.shape[1]) < lengths[:, None]
    return replace(batch, words=batch.words.gather(1, word_of) * is_character, lengths=lengths)


def _align_layers(layers: Tensor, word_of: Tensor) -> Tensor:
    """(B, words, L, D) -> (B, characters, L, D)"""
    return layers[torch.arange(len(layers))[:, None], word_of]


def _align_encoder_input(encoder_input: EncoderInput, word_of: Tensor) -> EncoderInput:
    """The same input, with each character's vector where its word's comes out."""
    return EncoderInput(encoder_input.batch, encoder_input.places.gather(1, word_of))
