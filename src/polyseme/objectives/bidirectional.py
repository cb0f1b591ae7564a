"""ELMo's objective: the next word from what came before, the last one from what comes after.

The two directions share the softmax and the word vectors, and nothing else (Peters et al., 2018).
"""

from typing import ClassVar, Literal

import numpy as np
from torch import nn

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.directions import Direction
from polyseme.objectives.prediction import Encode, Prediction
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, build_softmax
from polyseme.objectives.targets import TrainingTargets, next_words, previous_words


class BidirectionalConfig(Settings):
    """A forward and a backward language model, trained together."""

    direction: ClassVar[Direction] = "separate"
    reason: ClassVar[str] = "each half must predict a word that it has not seen"

    kind: Literal["bidirectional"] = "bidirectional"
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""


class Bidirectional(nn.Module):
    """Two language models that read in opposite directions."""

    pairs = False

    def __init__(self, config: BidirectionalConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.softmax = build_softmax(config.softmax, vocab_size=vocab_size, dim=dim)

    def make_targets(
        self,
        batch: Batch,
        vocabulary: Vocabulary,  # noqa: ARG002
        random: np.random.Generator,
    ) -> TrainingTargets:
        """Every word but the first from the left, every word but the last from the right."""
        parts = {"forward": next_words(batch), "backward": previous_words(batch)}
        return TrainingTargets(batch, parts, self.softmax.sample_negatives(random))

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        """Each direction from its own half of the top layer."""
        forward, backward = encode(targets.batch).halves
        return {
            "forward": Prediction.at(self.softmax, forward, targets.parts["forward"]),
            "backward": Prediction.at(self.softmax, backward, targets.parts["backward"]),
        }
