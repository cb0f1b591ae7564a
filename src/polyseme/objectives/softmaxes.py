"""From a vector to a word of the vocabulary: full, sampled or adaptive.

All three are measured alike, by the probability among all words. They differ in what a training
step costs: full grows with the vocabulary, sampled does not, adaptive spends less on rare words.
"""

from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from polyseme.batches.marks import PADDING
from polyseme.config import Settings
from polyseme.errors import ConfigError
from polyseme.objectives.crossentropy import log_probabilities, summed_cross_entropy
from polyseme.objectives.question import Candidates


class FullSoftmaxConfig(Settings):
    """Every word competes at every step."""

    kind: Literal["full"] = "full"
    tied: bool = False
    """Whether words are predicted with the very vectors they are read with."""


class SampledSoftmaxConfig(Settings):
    """The right word competes with some drawn by frequency, the same for the whole batch."""

    kind: Literal["sampled"] = "sampled"
    samples: int = Field(8192, ge=1, le=10_000_000)
    """How many words are drawn at each step."""
    tied: bool = False
    """Whether words are predicted with the very vectors they are read with."""


class AdaptiveSoftmaxConfig(Settings):
    """Frequent words directly, rare ones by way of their group, in fewer numbers."""

    kind: Literal["adaptive"] = "adaptive"
    cutoffs: tuple[int, ...] = (4_000, 20_000)
    """Ids at which a group ends, rising; the last group ends with the vocabulary."""
    shrink: float = Field(4.0, gt=1)
    """How many times narrower each group's vectors are than the one's before."""

    @model_validator(mode="after")
    def _cutoffs_rise(self) -> "AdaptiveSoftmaxConfig":
        if not self.cutoffs or list(self.cutoffs) != sorted({c for c in self.cutoffs if c > 0}):
            raise ValueError(f"cutoffs {self.cutoffs} do not rise from above 0")
        return self


SoftmaxConfig = Annotated[
    FullSoftmaxConfig | SampledSoftmaxConfig | AdaptiveSoftmaxConfig, Field(discriminator="kind")
]


def build_softmax(
    config: SoftmaxConfig, *, vocabulary: int, width: int
) -> "WordSoftmax | AdaptiveSoftmax":
    """The head these settings ask for."""
    match config:
        case AdaptiveSoftmaxConfig():
            return AdaptiveSoftmax(config, vocabulary=vocabulary, width=width)
        case FullSoftmaxConfig() | SampledSoftmaxConfig():
            return WordSoftmax(config, vocabulary=vocabulary, width=width)


class WordSoftmax(nn.Module):
    """One vector and one number for each word. Tied, the vectors are the input's."""

    def __init__(
        self, config: FullSoftmaxConfig | SampledSoftmaxConfig, *, vocabulary: int, width: int
    ) -> None:
        super().__init__()
        self.config = config
        self.weight = None
        if not config.tied:
            self.weight = nn.Parameter(torch.randn(vocabulary, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def draw(self, random: np.random.Generator) -> Candidates | None:
        """The words that will compete in one step."""
        if not isinstance(self.config, SampledSoftmaxConfig):
            return None
        return draw_candidates(self.config.samples, len(self.bias), random)

    def loss(
        self, vectors: Tensor, answers: Tensor, *, table: Tensor | None, drawn: Candidates | None
    ) -> Tensor:
        """What training lowers, summed over (N, D) vectors."""
        weight, bias = self._weight(table), self.bias
        if drawn is None:
            return summed_cross_entropy(vectors, weight, bias, answers)
        # A word drawn often competes often; taking its expected number of appearances off its
        # score makes the sampled softmax, on average, the full one (Jean et al., 2015).
        shift = log_expected(len(bias), drawn.tries, vectors.device)
        return summed_cross_entropy(vectors, weight, bias - shift, answers, drawn.ids)

    def log_probabilities(
        self, vectors: Tensor, answers: Tensor, *, table: Tensor | None
    ) -> Tensor:
        """(N,) natural log of each answer's probability among all words."""
        return log_probabilities(vectors, self._weight(table), self.bias, answers)

    def _weight(self, table: Tensor | None) -> Tensor:
        if self.weight is not None:
            return self.weight
        assert table is not None
        return table


class AdaptiveSoftmax(nn.Module):
    """Grave et al. (2017), as PyTorch has it."""

    def __init__(self, config: AdaptiveSoftmaxConfig, *, vocabulary: int, width: int) -> None:
        super().__init__()
        cutoffs = [cutoff for cutoff in config.cutoffs if cutoff < vocabulary - 1]
        if width < config.shrink ** max(1, len(cutoffs)):
            raise ConfigError(
                f"An adaptive softmax of {len(cutoffs)} cutoffs, each group {config.shrink} times "
                f"narrower, leaves its last group nothing of the encoder's width {width}. Set "
                "objective.softmax.shrink lower, or give fewer cutoffs."
            )
        self.groups: Any = nn.AdaptiveLogSoftmaxWithLoss(
            width, vocabulary, cutoffs or [max(1, vocabulary // 2)], div_value=config.shrink
        )

    def draw(self, random: np.random.Generator) -> Candidates | None:  # noqa: ARG002
        """Nothing is drawn."""
        return None

    def loss(
        self,
        vectors: Tensor,
        answers: Tensor,
        *,
        table: Tensor | None,
        drawn: Candidates | None,  # noqa: ARG002
    ) -> Tensor:
        """What training lowers, summed over (N, D) vectors."""
        return -self.log_probabilities(vectors, answers, table=table).sum()

    def log_probabilities(
        self,
        vectors: Tensor,
        answers: Tensor,
        *,
        table: Tensor | None,  # noqa: ARG002
    ) -> Tensor:
        """(N,) natural log of each answer's probability among all words."""
        found: Tensor = self.groups(vectors.float(), answers).output
        return found


def draw_candidates(number: int, vocabulary: int, random: np.random.Generator) -> Candidates:
    """So many different ids, low ones (frequent words) more often: log-uniform over ranks.

    PADDING is never drawn. With `number` at or above all there are, all are taken.
    """
    ranks = vocabulary - 1
    if number >= ranks:
        return Candidates(torch.arange(1, vocabulary), tries=0)
    seen = np.empty(0, np.int64)
    while True:
        uniform = random.random(4 * number)
        more = np.minimum(np.exp(uniform * np.log(ranks + 1)).astype(np.int64), ranks) + PADDING
        seen = np.concatenate([seen, more])
        distinct, first = np.unique(seen, return_index=True)
        if len(distinct) >= number:
            break
    # The draw that brought the last one wanted; later ones never happened.
    tries = int(np.sort(first)[number - 1]) + 1
    return Candidates(torch.from_numpy(distinct[first < tries]), tries)


def log_expected(vocabulary: int, tries: int, device: torch.device) -> Tensor:
    """(V,) log of the chance that each id is among the candidates after so many draws."""
    if tries == 0:
        return torch.zeros(vocabulary, device=device)
    rank = torch.arange(vocabulary, device=device, dtype=torch.float64).clamp(min=1)
    chance = torch.log1p(1 / rank) / np.log(vocabulary)
    return (-torch.expm1(tries * torch.log1p(-chance))).log().float()
