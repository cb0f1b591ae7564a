"""BERT's objective: masked words from both sides, and whether one sentence follows another.

Of the words to be predicted, most are masked, some replaced and some left (Devlin et al., 2019), so
that the encoder cannot know which words of a sentence to trust.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.data.batch import FIRST_WORD, MASK, Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.encoded import Direction
from polyseme.objectives.prediction import (
    Encode,
    HeldOutMeasure,
    Negatives,
    Prediction,
    Targets,
    TrainingTargets,
    all_words,
)
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, WordSoftmax

WORDS = "masked"
"""The part of the loss that is about words."""
NEXT_SENTENCE = "next_sentence"
"""The part that is not: whether the second sentence follows the first."""


class MaskedConfig(Settings):
    """Masked words, and whether a sentence follows."""

    direction: ClassVar[Direction] = "joint"
    reason: ClassVar[str] = "a masked word is to be predicted from both its sides"

    kind: Literal["masked"] = "masked"
    mask_probability: float = Field(0.15, gt=0, lt=1)
    """Fraction of words to predict."""
    mask_token_share: float = Field(0.8, ge=0, le=1)
    """Fraction of these replaced by the mask token."""
    random_token_share: float = Field(0.1, ge=0, le=1)
    """Fraction of these replaced by a random word of the batch; the rest are unchanged."""
    next_sentence: bool = True
    """Whether sentences come in pairs, and whether the second follows is to be predicted."""
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""

    @model_validator(mode="after")
    def _shares_fit(self) -> "MaskedConfig":
        if self.mask_token_share + self.random_token_share > 1 + 1e-9:
            raise ValueError(
                f"mask_token_share {self.mask_token_share} and random_token_share "
                f"{self.random_token_share} add up to more than 1"
            )
        return self


class Masked(nn.Module):
    """What the masked words were."""

    def __init__(self, config: MaskedConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.config = config
        self.pairs = config.next_sentence
        self.softmax = WordSoftmax(config.softmax, vocab_size=vocab_size, dim=dim)
        self.next_sentence = ClassificationHead(dim, 2) if config.next_sentence else None

    def make_targets(
        self, batch: Batch, vocabulary: Vocabulary, random: np.random.Generator
    ) -> TrainingTargets:
        """Some words of the batch, masked in it; and whether the second sentence follows."""
        words = all_words(batch)
        number = max(1, round(self.config.mask_probability * len(words.ids)))
        chosen = torch.from_numpy(random.permutation(len(words.ids))[:number])
        masked = Targets(words.rows[chosen], words.columns[chosen], words.ids[chosen])
        parts = {WORDS: masked}
        if self.next_sentence is not None and batch.follows is not None:
            sentences = torch.arange(len(batch.lengths))
            parts[NEXT_SENTENCE] = Targets(sentences, torch.zeros_like(sentences), batch.follows)
        batch = self._mask(batch, masked, vocabulary, random)
        return TrainingTargets(batch, parts, self.softmax.sample_negatives(random))

    def _mask(
        self, batch: Batch, targets: Targets, vocabulary: Vocabulary, random: np.random.Generator
    ) -> Batch:
        """The batch with the words to be predicted masked, replaced at random, or left."""
        batch, mask_index = _with_mask_token(batch, vocabulary)
        drawn = torch.from_numpy(random.random(len(targets.rows)))
        masked = self.config.mask_token_share
        is_masked = drawn < masked
        is_random = ~is_masked & (drawn < masked + self.config.random_token_share)
        known = (batch.ids >= FIRST_WORD).nonzero().squeeze(1)
        words = batch.words.clone()
        words[targets.rows[is_masked], targets.columns[is_masked]] = mask_index
        if len(known):
            others = known[random.integers(0, len(known), int(is_random.sum()))]
            words[targets.rows[is_random], targets.columns[is_random]] = others
        return replace(batch, words=words)

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        """Masked words from the top layer in their place, pairs from it at the first BOS."""
        top, parts = encode(targets.batch).top, targets.parts
        found = {WORDS: Prediction.at(self.softmax, top, parts[WORDS])}
        if self.next_sentence is not None and NEXT_SENTENCE in parts:
            found[NEXT_SENTENCE] = Prediction.at(self.next_sentence, top, parts[NEXT_SENTENCE])
        return found


class ClassificationHead(nn.Linear):
    """One of a few classes, no words: 1 where the second sentence follows the first, else 0."""

    measure: HeldOutMeasure = "accuracy"

    def losses(
        self,
        parts: Sequence[tuple[Tensor, Tensor]],
        *,
        table: Tensor | None,
        negatives: Negatives | None,  # noqa: ARG002
    ) -> Sequence[Tensor]:
        """What training lowers, for each (B, D) vectors and (B,) targets summed over them."""
        return [-self.log_probabilities(*part, table=table).sum() for part in parts]

    def log_probabilities(
        self,
        vectors: Tensor,
        targets: Tensor,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> Tensor:
        """(B,) natural log of each target's probability."""
        return -functional.cross_entropy(self(vectors).float(), targets, reduction="none")

    def top_k(
        self,
        vectors: Tensor,
        k: int,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        """(B, k) natural logs of the highest probabilities, falling; and (B, k) which they are."""
        log_probs, ids = self(vectors).float().log_softmax(dim=-1).topk(k, dim=-1)
        return log_probs, ids

    def logits(
        self,
        vectors: Tensor,
        ids: Tensor,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> Tensor:
        """(B, K) log-probabilities of these K classes, up to a constant for each vector."""
        found: Tensor = self(vectors)[:, ids]
        return found


def _with_mask_token(batch: Batch, vocabulary: Vocabulary) -> tuple[Batch, int]:
    """The batch with the mask token among its distinct words, and its index there."""
    char_ids = torch.from_numpy(vocabulary.special_token_chars[MASK].astype(np.int64))
    width = batch.char_ids.shape[1]
    characters = torch.cat([batch.char_ids, char_ids[None, :width]])
    ids = torch.cat([batch.ids, batch.ids.new_tensor([MASK])])
    return replace(batch, ids=ids, char_ids=characters), len(batch.ids)
