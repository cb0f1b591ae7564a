"""GPT's objective: the next word from what came before (Radford et al., 2018)."""

from typing import ClassVar, Literal

import numpy as np
from torch import nn

from polyseme.batches.batch import Batch
from polyseme.batches.lexicon import Lexicon
from polyseme.config import Settings
from polyseme.encoders.directions import Direction
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.guess import Guess
from polyseme.objectives.places import following
from polyseme.objectives.question import Question
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, build_softmax


class CausalConfig(Settings):
    """A language model that reads forward only."""

    needs: ClassVar[Direction] = "forward"
    because: ClassVar[str] = "a word that is to be predicted must not have been seen"

    kind: Literal["causal"] = "causal"
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""


class Causal(nn.Module):
    """One language model, from left to right."""

    pairs = False

    def __init__(self, config: CausalConfig, *, vocabulary: int, width: int) -> None:
        super().__init__()
        self.softmax = build_softmax(config.softmax, vocabulary=vocabulary, width=width)

    def ask(self, batch: Batch, lexicon: Lexicon, random: np.random.Generator) -> Question:  # noqa: ARG002
        """Every word but the first, from those before it."""
        return Question(batch, {"forward": following(batch)}, self.softmax.draw(random))

    def guess(self, encoded: Encoded, question: Question) -> dict[str, Guess]:
        """From the top layer at the word before."""
        asked = question.asked["forward"]
        return {"forward": Guess(self.softmax, encoded.top[asked.rows, asked.columns])}
