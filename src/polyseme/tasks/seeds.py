"""A task trained several times, differing in nothing but the seed: a folder for each.

What a comparison trains: the variants of a task that differ in their embeddings.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from polyseme.storage.folders import SEED_PREFIX


class MeanStd(NamedTuple):
    """A measure over seeds."""

    mean: float
    std: float | None
    """Standard deviation of the sample; None where there is a single seed."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanStd":
        """Of one value for each seed."""
        std = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), std)

    def __str__(self) -> str:
        told = "" if self.std is None else f" ± {100 * self.std:.2f}"
        return f"{100 * self.mean:.2f}{told}"


# Ways to deal the seeds that are all looked at: ten against ten are 184,756. Of more, so many.
_WAYS = 200_000
_TINY = 1e-12  # sums of the same values may differ by rounding


class SeedComparison(NamedTuple):
    """Two variants by their seeds: would others have told the same?"""

    difference: float
    """How much better the second is."""
    standard_error: float
    """Of the difference, by the variance of each variant's seeds."""
    p_value: float
    """How probable a difference at least this large, either way, would be if seeds were dealt to
    the two at random: an exact permutation test. With three seeds each it is never under 0.1."""

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> "SeedComparison | None":
        """Of one value for each seed; None where either variant has a single one."""
        if min(len(first), len(second)) < 2:
            return None
        variances = [statistics.variance(each) / len(each) for each in (first, second)]
        return cls(
            difference=statistics.fmean(second) - statistics.fmean(first),
            standard_error=math.sqrt(sum(variances)),
            p_value=_permutation_p(first, second),
        )


def _permutation_p(first: Sequence[float], second: Sequence[float]) -> float:
    values = np.array([*first, *second])
    total, size = float(values.sum()), len(first)

    def distance(sums: float) -> float:
        return abs((total - sums) / len(second) - sums / size)

    observed = distance(float(values[:size].sum()))
    as_large = [distance(float(values[list(own)].sum())) >= observed - _TINY
                for own in _ways(len(values), size)]  # fmt: skip
    return sum(as_large) / len(as_large)


def _ways(number: int, size: int) -> Iterator[Sequence[int]]:
    """All ways to choose so many, or very many of them; what was observed is the first."""
    if math.comb(number, size) <= _WAYS:
        yield from combinations(range(number), size)
        return
    yield range(size)
    random = np.random.default_rng(0)
    for _ in range(_WAYS // 10):
        yield random.permutation(number)[:size].tolist()


def seed_folder(folder: Path, seed: int) -> Path:
    """Where the task trained with this seed lies."""
    return folder / f"{SEED_PREFIX}{seed}"


Variant = Literal["none", "static", "frozen", "finetuned"]
