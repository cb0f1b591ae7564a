"""ELMo's objective: the next word from what came before, the last one from what comes after.

The two directions share the softmax and the word vectors, and nothing else (Peters et al., 2018).
A cloze head may be added, which predicts a word from both sides at once: from the forward state
just before it and the backward state just after it, neither of which has seen it.

GPT's objective: the next word from what came before (Radford et al., 2018).
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.encoded import Direction
from polyseme.objectives.prediction import (
    Encode,
    Prediction,
    Targets,
    TrainingTargets,
    all_words,
    next_words,
    previous_words,
)
from polyseme.objectives.softmaxes import SampledSoftmaxConfig, SoftmaxConfig, WordSoftmax

CLOZE = "cloze"
_WIDER = 4  # times the dimension of a direction: the head's hidden layer


class BidirectionalConfig(Settings):
    """A forward and a backward language model, trained together."""

    direction: ClassVar[Direction] = "separate"
    reason: ClassVar[str] = "each half must predict a word that it has not seen"

    kind: Literal["bidirectional"] = "bidirectional"
    softmax: SoftmaxConfig = SampledSoftmaxConfig()
    """How words are predicted."""
    cloze: bool = False
    """Also predict each word from both sides at once, with a separate head."""


class ClozeHead(nn.Module):
    """What is expected between a left and a right context: two states in, one vector out.

    The vector is for the softmax of the two directions.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * dim, _WIDER * dim)
        self.output = nn.Linear(_WIDER * dim, dim)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """(N, D) and (N, D) -> (N, D)"""
        hidden = nn.functional.gelu(self.hidden(torch.cat([left, right], dim=-1)))
        # The sum alone is both directions' predictions multiplied and divided by the word's own
        # probability, which the bias of the softmax is near: what is learnt comes on top of that.
        vectors: Tensor = self.output(hidden) + left + right
        return vectors


class Bidirectional(nn.Module):
    """Two language models that read in opposite directions."""

    pairs = False

    def __init__(self, config: BidirectionalConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.softmax = WordSoftmax(config.softmax, vocab_size=vocab_size, dim=dim)
        self.cloze = ClozeHead(dim) if config.cloze else None

    def make_targets(
        self,
        batch: Batch,
        vocabulary: Vocabulary,  # noqa: ARG002
        random: np.random.Generator,
    ) -> TrainingTargets:
        """Every word but the first from the left, every word but the last from the right.

        With a cloze head, also every word that is no special token from both sides.
        """
        parts = {"forward": next_words(batch), "backward": previous_words(batch)}
        if self.cloze is not None:
            parts[CLOZE] = all_words(batch)
        return TrainingTargets(batch, parts, self.softmax.sample_negatives(random))

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:
        """Each direction from its own half of the top layer; a cloze from both."""
        forward, backward = encode(targets.batch).halves
        return {
            name: Prediction(self.softmax, self._vectors(name, forward, backward, part), part.ids)
            for name, part in targets.parts.items()
        }

    def _vectors(self, name: str, forward: Tensor, backward: Tensor, part: Targets) -> Tensor:
        """(N, D) what predicts the targets of a part."""
        match name:
            case "forward":
                return forward[part.rows, part.columns]
            case "backward":
                return backward[part.rows, part.columns]
        assert self.cloze is not None
        before = forward[part.rows, part.columns - 1]
        after = backward[part.rows, part.columns + 1]
        vectors: Tensor = self.cloze(before, after)
        return vectors


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
