"""From a vector to a word of the vocabulary: full, sampled or adaptive.

All three are measured alike, by the probability among all words. They differ in what a training
step costs: full grows with the vocabulary, sampled does not, adaptive spends less on rare words.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.special_tokens import PAD
from polyseme.errors import ConfigError
from polyseme.objectives.crossentropy import (
    log_probabilities,
    row_chunks,
    summed_cross_entropies,
    top_k,
)
from polyseme.objectives.prediction import HeldOutMeasure
from polyseme.objectives.targets import Negatives


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


class AdaptiveSoftmaxConfig(Settings):
    """Frequent words directly, rare ones by way of their cluster, in fewer dimensions."""

    kind: Literal["adaptive"] = "adaptive"
    cutoffs: tuple[int, ...] = (4_000, 20_000)
    """Ids at which a cluster ends, rising; the last cluster ends with the vocabulary."""
    div_value: float = Field(4.0, gt=1)
    """Factor by which the dimension of the vectors falls from each cluster to the next."""

    @model_validator(mode="after")
    def _cutoffs_rise(self) -> "AdaptiveSoftmaxConfig":
        if not self.cutoffs or list(self.cutoffs) != sorted({c for c in self.cutoffs if c > 0}):
            raise ValueError(f"cutoffs {self.cutoffs} do not rise from above 0")
        return self


SoftmaxConfig = Annotated[
    FullSoftmaxConfig | SampledSoftmaxConfig | AdaptiveSoftmaxConfig, Field(discriminator="kind")
]


def build_softmax(
    config: SoftmaxConfig, *, vocab_size: int, dim: int
) -> "WordSoftmax | AdaptiveSoftmax":
    """The head these settings ask for."""
    match config:
        case AdaptiveSoftmaxConfig():
            return AdaptiveSoftmax(config, vocab_size=vocab_size, dim=dim)
        case FullSoftmaxConfig() | SampledSoftmaxConfig():
            return WordSoftmax(config, vocab_size=vocab_size, dim=dim)


class WordSoftmax(nn.Module):
    """A vector and a bias for each word. Tied, the vectors are the input's."""

    measure: HeldOutMeasure = "perplexity"

    def __init__(
        self, config: FullSoftmaxConfig | SampledSoftmaxConfig, *, vocab_size: int, dim: int
    ) -> None:
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


class AdaptiveSoftmax(nn.Module):
    """Grave et al. (2017), as PyTorch has it."""

    measure: HeldOutMeasure = "perplexity"

    def __init__(self, config: AdaptiveSoftmaxConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        cutoffs = [cutoff for cutoff in config.cutoffs if cutoff < vocab_size - 1]
        if dim < config.div_value ** max(1, len(cutoffs)):
            raise ConfigError(
                f"An adaptive softmax of {len(cutoffs)} cutoffs, each cluster with "
                f"{config.div_value} times fewer dimensions, leaves its last cluster none of the "
                f"encoder's {dim}. Set objective.softmax.div_value lower, or give fewer cutoffs."
            )
        self.clusters: Any = nn.AdaptiveLogSoftmaxWithLoss(
            dim, vocab_size, cutoffs or [max(1, vocab_size // 2)], div_value=config.div_value
        )

    def sample_negatives(self, random: np.random.Generator) -> Negatives | None:  # noqa: ARG002
        """None: all words compete."""
        return None

    def losses(
        self,
        parts: Sequence[tuple[Tensor, Tensor]],
        *,
        table: Tensor | None,
        negatives: Negatives | None,  # noqa: ARG002
    ) -> Sequence[Tensor]:
        """What training lowers, for each (N, D) vectors and (N,) targets summed over them."""
        return [-self.log_probabilities(*part, table=table).sum() for part in parts]

    def log_probabilities(
        self,
        vectors: Tensor,
        targets: Tensor,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> Tensor:
        """(N,) natural log of each target's probability among all words."""
        found: Tensor = self.clusters(vectors.float(), targets).output
        return found

    def top_k(
        self,
        vectors: Tensor,
        k: int,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        """(N, k) natural logs of the highest probabilities, falling; and (N, k) their words."""
        log_probs = vectors.new_empty(len(vectors), k, dtype=torch.float32)
        ids = torch.empty(len(vectors), k, dtype=torch.long, device=vectors.device)
        for rows in row_chunks(len(vectors), self.clusters.n_classes):
            all_words = self.clusters.log_prob(vectors[rows].float())
            log_probs[rows], ids[rows] = all_words.topk(k, dim=-1)
        return log_probs, ids

    def logits(
        self,
        vectors: Tensor,
        ids: Tensor,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> Tensor:
        """(N, K) natural logs of the probabilities of these K words."""
        chosen = vectors.new_empty(len(vectors), len(ids), dtype=torch.float32)
        for rows in row_chunks(len(vectors), self.clusters.n_classes):
            chosen[rows] = self.clusters.log_prob(vectors[rows].float())[:, ids]
        return chosen


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
