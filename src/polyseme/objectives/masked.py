"""BERT's objective: hidden words from both sides, and whether one sentence follows another.

Of the words asked for, most are hidden, some replaced and some left (Devlin et al., 2019), so that
the encoder cannot know which words of a sentence to trust.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.batches.batch import Batch
from polyseme.batches.lexicon import Lexicon
from polyseme.batches.marks import FIRST_WORD, HIDDEN
from polyseme.config import Settings
from polyseme.encoders.directions import Direction
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.guess import Guess
from polyseme.objectives.places import answers_of, chosen, real_words
from polyseme.objectives.question import Asked, Candidates, Question
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, build_softmax

NEXT = "next"
"""The part of the loss that is no word: whether the second sentence follows the first."""


class MaskedConfig(Settings):
    """Hidden words, and whether a sentence follows."""

    needs: ClassVar[Direction] = "together"
    because: ClassVar[str] = "a hidden word is to be told from both its sides"

    kind: Literal["masked"] = "masked"
    share: float = Field(0.15, gt=0, lt=1)
    """Share of words asked for."""
    hidden: float = Field(0.8, ge=0, le=1)
    """Share of these that are hidden."""
    replaced: float = Field(0.1, ge=0, le=1)
    """Share of these that stand replaced by another word of the batch; the rest stay."""
    next_sentence: bool = True
    """Whether sentences come in pairs and the second is to be told from a random one."""
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""

    @model_validator(mode="after")
    def _shares_fit(self) -> "MaskedConfig":
        if self.hidden + self.replaced > 1 + 1e-9:
            raise ValueError(f"hidden {self.hidden} and replaced {self.replaced} are more than all")
        return self


class Masked(nn.Module):
    """What the hidden words were."""

    def __init__(self, config: MaskedConfig, *, vocabulary: int, width: int) -> None:
        super().__init__()
        self.config = config
        self.pairs = config.next_sentence
        self.softmax = build_softmax(config.softmax, vocabulary=vocabulary, width=width)
        self.next = _Follows(width, 2) if config.next_sentence else None

    def ask(self, batch: Batch, lexicon: Lexicon, random: np.random.Generator) -> Question:
        """Some words of the batch, and what stands in their place."""
        ids = answers_of(batch)
        rows, columns = real_words(batch)
        number = max(1, round(self.config.share * len(rows)))
        which = torch.from_numpy(random.permutation(len(rows))[:number])
        asked = {"masked": chosen(rows, columns, which, ids)}
        if self.next is not None and batch.follows is not None:
            sentences = torch.arange(len(batch.lengths))
            asked[NEXT] = Asked(sentences, torch.zeros_like(sentences), batch.follows)
        changed = self._disguise(batch, asked["masked"], lexicon, random)
        return Question(changed, asked, self.softmax.draw(random))

    def _disguise(
        self, batch: Batch, asked: Asked, lexicon: Lexicon, random: np.random.Generator
    ) -> Batch:
        """The batch with the words asked for hidden, replaced, or left."""
        batch, veil = _with_veil(batch, lexicon)
        fate = torch.from_numpy(random.random(len(asked.rows)))
        is_hidden = fate < self.config.hidden
        is_replaced = ~is_hidden & (fate < self.config.hidden + self.config.replaced)
        candidates = (batch.ids >= FIRST_WORD).nonzero().squeeze(1)
        words = batch.words.clone()
        words[asked.rows[is_hidden], asked.columns[is_hidden]] = veil
        if len(candidates):
            drawn = random.integers(0, len(candidates), int(is_replaced.sum()))
            words[asked.rows[is_replaced], asked.columns[is_replaced]] = candidates[drawn]
        return replace(batch, words=words)

    def guess(self, encoded: Encoded, question: Question) -> dict[str, Guess]:
        """Hidden words from the top layer in their place, pairs from it at the first mark."""
        asked = question.asked["masked"]
        guesses = {"masked": Guess(self.softmax, encoded.top[asked.rows, asked.columns])}
        if self.next is not None and NEXT in question.asked:
            asked = question.asked[NEXT]
            guesses[NEXT] = Guess(self.next, encoded.top[asked.rows, asked.columns])
        return guesses


class _Follows(nn.Linear):
    """Whether the second sentence follows the first: yes or no, no words."""

    def loss(
        self,
        vectors: Tensor,
        answers: Tensor,
        *,
        table: Tensor | None,
        drawn: Candidates | None,  # noqa: ARG002
    ) -> Tensor:
        """What training lowers, summed over (B, D) vectors."""
        return -self.log_probabilities(vectors, answers, table=table).sum()

    def log_probabilities(
        self,
        vectors: Tensor,
        answers: Tensor,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> Tensor:
        """(B,) natural log of each right answer's probability."""
        return -functional.cross_entropy(self(vectors).float(), answers, reduction="none")


def _with_veil(batch: Batch, lexicon: Lexicon) -> tuple[Batch, int]:
    """The batch with the word that hides others among its distinct words, and its place."""
    spelling = torch.from_numpy(lexicon.mark_characters[HIDDEN].astype(np.int64))
    width = batch.characters.shape[1]
    characters = torch.cat([batch.characters, spelling[None, :width]])
    ids = torch.cat([batch.ids, batch.ids.new_tensor([HIDDEN])])
    return replace(batch, ids=ids, characters=characters), len(batch.ids)
