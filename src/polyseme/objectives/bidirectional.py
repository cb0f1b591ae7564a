"""ELMo's objective: the next word from what came before, the last one from what comes after.

The two directions share the softmax and the word vectors, and nothing else (Peters et al., 2018).
"""

from typing import ClassVar, Literal

import numpy as np
from torch import nn

from polyseme.batches.batch import Batch
from polyseme.batches.lexicon import Lexicon
from polyseme.config import Settings
from polyseme.encoders.directions import Direction
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.guess import Guess
from polyseme.objectives.places import following, preceding
from polyseme.objectives.question import Question
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, build_softmax


class BidirectionalConfig(Settings):
    """A forward and a backward language model, trained together."""

    needs: ClassVar[Direction] = "apart"
    because: ClassVar[str] = "each half must predict a word that it has not seen"

    kind: Literal["bidirectional"] = "bidirectional"
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""


class Bidirectional(nn.Module):
    """Two language models that read in opposite directions."""

    pairs = False

    def __init__(self, config: BidirectionalConfig, *, vocabulary: int, width: int) -> None:
        super().__init__()
        self.softmax = build_softmax(config.softmax, vocabulary=vocabulary, width=width)

    def ask(self, batch: Batch, lexicon: Lexicon, random: np.random.Generator) -> Question:  # noqa: ARG002
        """Every word but the first from the left, every word but the last from the right."""
        asked = {"forward": following(batch), "backward": preceding(batch)}
        return Question(batch, asked, self.softmax.draw(random))

    def guess(self, encoded: Encoded, question: Question) -> dict[str, Guess]:
        """Each direction from its own half of the top layer."""
        forward, backward = encoded.halves
        ahead, behind = question.asked["forward"], question.asked["backward"]
        return {
            "forward": Guess(self.softmax, forward[ahead.rows, ahead.columns]),
            "backward": Guess(self.softmax, backward[behind.rows, behind.columns]),
        }
