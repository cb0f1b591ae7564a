"""GPT's objective: the next word from what came before (Radford et al., 2018)."""

from typing import ClassVar, Literal

import numpy as np
from torch import nn

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.encoded import Direction
from polyseme.objectives.prediction import Encode, Prediction
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, WordSoftmax
from polyseme.objectives.targets import TrainingTargets, next_words


class CausalConfig(Settings):
    """A language model that reads forward only."""

    direction: ClassVar[Direction] = "forward"
    reason: ClassVar[str] = "a word that is to be predicted must not have been seen"

    kind: Literal["causal"] = "causal"
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""


class Causal(nn.Module):
    """One language model, from left to right."""

    pairs = False

    def __init__(self, config: CausalConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.softmax = WordSoftmax(config.softmax, vocab_size=vocab_size, dim=dim)

    def make_targets(
        self,
        batch: Batch,
        vocabulary: Vocabulary,  # noqa: ARG002
        random: np.random.Generator,
    ) -> TrainingTargets:
        """Every word but the first, from those before it."""
        negatives = self.softmax.sample_negatives(random)
        return TrainingTargets(batch, {"forward": next_words(batch)}, negatives)

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        """From the top layer at the word before."""
        top = encode(targets.batch).top
        return {"forward": Prediction.at(self.softmax, top, targets.parts["forward"])}
