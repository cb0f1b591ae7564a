"""From a vector to a word of the vocabulary: full or sampled.

Both are measured alike, by the probability among all words. They differ in what a training step
costs: full grows with the vocabulary, sampled does not.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import PAD
from polyseme.objectives.crossentropy import (
    log_probabilities,
    summed_cross_entropies,
    top_k,
)
from polyseme.objectives.prediction import HeldOutMeasure, Negatives


class FullSoftmaxConfig(Settings):
    """Every word competes at every step."""

    kind: Literal["full"] = "full"
    tied: bool = False
    """Whether the output embeddings are tied to the input word embeddings."""


class SampledSoftmaxConfig(Settings):
    """The target competes with negatives sampled by frequency, the same for the whole batch."""

    kind: Literal["sampled"] = "sampled"
    num_samples: int = Field(8192, ge=1, le=10_000_000)
    """How many negatives are sampled at each step."""
    tied: bool = False
    """Whether the output embeddings are tied to the input word embeddings."""


SoftmaxConfig = Annotated[FullSoftmaxConfig | SampledSoftmaxConfig, Field(discriminator="kind")]


class WordSoftmax(nn.Module):
    """A vector and a bias for each word. Tied, the vectors are the input's."""

    measure: HeldOutMeasure = "perplexity"

    def __init__(self, config: SoftmaxConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.config = config
        self.weight = None
        if not config.tied:
            self.weight = nn.Parameter(torch.randn(vocab_size, dim) * dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def sample_negatives(self, random: np.random.Generator) -> Negatives | None:
        """The words that will compete with the targets in one step."""
        if not isinstance(self.config, SampledSoftmaxConfig):
            return None
        return sample_negatives(self.config.num_samples, len(self.bias), random)

    def losses(
        self,
        parts: Sequence[tuple[Tensor, Tensor]],
        *,
        table: Tensor | None,
        negatives: Negatives | None,
    ) -> Sequence[Tensor]:
        """What training lowers, for each (N, D) vectors and (N,) targets summed over them."""
        weight = self._weight(table)
        if negatives is None:
            return summed_cross_entropies(parts, weight, self.bias)
        # A word sampled often competes often; subtracting the log of how likely it is to be
        # sampled makes the sampled softmax, on average, the full one (Jean et al., 2015).
        bias = self.bias - log_q(len(self.bias), negatives.num_tries, weight.device)
        return summed_cross_entropies(parts, weight, bias, negatives.ids)

    def log_probabilities(
        self, vectors: Tensor, targets: Tensor, *, table: Tensor | None
    ) -> Tensor:
        """(N,) natural log of each target's probability among all words."""
        return log_probabilities(vectors, self._weight(table), self.bias, targets)

    def top_k(self, vectors: Tensor, k: int, *, table: Tensor | None) -> tuple[Tensor, Tensor]:
        """(N, k) natural logs of the highest probabilities, falling; and (N, k) their words."""
        return top_k(vectors, self._weight(table), self.bias, k)

    def logits(self, vectors: Tensor, ids: Tensor, *, table: Tensor | None) -> Tensor:
        """(N, K) log-probabilities of these K words, up to a constant for each vector."""
        return torch.addmm(self.bias[ids], vectors, self._weight(table)[ids].t())

    def _weight(self, table: Tensor | None) -> Tensor:
        if self.weight is not None:
            return self.weight
        assert table is not None
        return table


def sample_negatives(number: int, vocab_size: int, random: np.random.Generator) -> Negatives:
    """So many different ids, low ones (frequent words) more often: log-uniform over ranks.

    Padding is never sampled. With `number` at or above all there are, all are taken.
    """
    ranks = vocab_size - 1
    if number >= ranks:
        return Negatives(torch.arange(1, vocab_size), num_tries=0)
    seen = np.empty(0, np.int64)
    while True:
        uniform = random.random(4 * number)
        more = np.minimum(np.exp(uniform * np.log(ranks + 1)).astype(np.int64), ranks) + PAD
        seen = np.concatenate([seen, more])
        distinct, first = np.unique(seen, return_index=True)
        if len(distinct) >= number:
            break
    # The draw that brought the last one wanted; later ones never happened.
    num_tries = int(np.sort(first)[number - 1]) + 1
    return Negatives(torch.from_numpy(distinct[first < num_tries]), num_tries)


def log_q(vocab_size: int, num_tries: int, device: torch.device) -> Tensor:
    """(V,) log of the probability that each id is among the negatives after so many draws."""
    if num_tries == 0:
        return torch.zeros(vocab_size, device=device)
    rank = torch.arange(vocab_size, device=device, dtype=torch.float64).clamp(min=1)
    probability = torch.log1p(1 / rank) / np.log(vocab_size)
    return (-torch.expm1(num_tries * torch.log1p(-probability))).log().float()
