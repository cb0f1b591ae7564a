"""How far people agree: Krippendorff's alpha, its interval, and what would make it narrower.

    in   for each item how many people gave each value, (N, V)
    out  alpha: 1 where all agree, 0 where they agree as if by chance, below where they agree less

Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": 1 less the observed disagreement
over that expected if the same values had been given by chance. Any number of people may have judged
each item; those that only one judged do not count. Written from that paper, since the package of
the same name (GPL) cannot be a dependency of ours; the tests have its numbers.

An interval comes from drawing the items again, with replacement (bootstrap percentiles).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Counts: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval", "ratio"]

RESAMPLES = 1_000
_EDGES = (2.5, 97.5)  # percentiles: an interval of 95 %


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float
    num_items: int
    """Items it was measured on."""

    @property
    def half_width(self) -> float:
        """How far the interval reaches to either side, on average."""
        return (self.high - self.low) / 2

    def items_for(self, within: float) -> int | None:
        """About how many items give an interval of ±`within`: its width falls with the root of
        their number. None if these say nothing of it."""
        if not self.half_width > 0:
            return None
        return math.ceil(self.num_items * (self.half_width / within) ** 2)

    def to_json(self) -> dict[str, Any]:
        """Plain values; null for what there is not."""
        figures = {"value": self.value, "low": self.low, "high": self.high}
        found = {name: None if math.isnan(v) else round(v, 4) for name, v in figures.items()}
        return {**found, "items": self.num_items}


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def krippendorff_alpha(counts: Counts, level: Level = "nominal") -> float:
    """Alpha; NaN if no two people judged an item, or all gave the same value.

    `counts`: (N, V), how many people gave each value to each item. Values other than nominal ones
    stand in order; as `interval` and `ratio` they are 1, 2, 3, ….
    """
    counts = pairable(counts)
    return _alpha(counts, np.ones(len(counts)), level)


def estimate_alpha(counts: Counts, level: Level = "nominal", *, seed: int = 1) -> Estimate:
    """Alpha with its interval."""
    counts = pairable(counts)
    if not len(counts):
        return NOTHING
    kinds, weights = _drawn_again(counts, seed)
    again = [_alpha(kinds, each, level) for each in weights]
    value = _alpha(counts, np.ones(len(counts)), level)
    return _estimate(value, np.array(again), len(counts))


def estimate_mean(means: Sequence[float], *, seed: int = 1) -> Estimate:
    """The mean over items with its interval."""
    if not len(means):
        return NOTHING
    column = np.asarray(means, np.float64)[:, None]
    kinds, weights = _drawn_again(column, seed)
    return _estimate(float(column.mean()), (weights @ kinds)[:, 0] / len(column), len(column))


def disputes(counts: Counts, level: Level) -> Numbers:
    """(N,) how far the judgments of each item are apart, 1 being as far as by chance.

    0 where fewer than two people judged.
    """
    several = counts.sum(axis=1) > 1
    found = np.zeros(len(counts))
    judged = counts[several]
    if not len(judged):
        return found
    totals = judged.sum(axis=0).astype(np.float64)
    apart = _distances(totals, level)
    expected = _by_chance(totals, apart)
    numbers = judged.sum(axis=1)
    own = ((judged @ apart) * judged).sum(axis=1) / (numbers * (numbers - 1))
    found[several] = own / expected if expected else 0.0
    return found


def pairable(counts: Counts) -> Counts:
    """The items that two people or more judged."""
    several: Counts = counts[counts.sum(axis=1) > 1]
    return several


def _alpha(counts: Counts, weights: Numbers, level: Level) -> float:
    """Of items that count as often as `weights` says."""
    totals = weights @ counts
    apart = _distances(totals, level)
    expected = _by_chance(totals, apart) if len(counts) else 0.0
    if expected <= 0:
        return math.nan
    each = weights / (counts.sum(axis=1) - 1)
    # Coincidences: how often two people's judgments of one item are these two values. Those of a
    # judgment with itself are on the diagonal, where nothing is apart.
    together = counts.T @ (counts * each[:, None])
    return float(1 - (together * apart).sum() / totals.sum() / expected)


def _by_chance(totals: Numbers, apart: Numbers) -> float:
    """The expected disagreement of two judgments drawn from all."""
    number = totals.sum()
    return float(totals @ apart @ totals / (number * (number - 1)))


def _distances(totals: Numbers, level: Level) -> Numbers:
    """(V, V) squared differences of values."""
    if level == "nominal":
        return 1.0 - np.eye(len(totals))
    # Ordinal values are as far apart as there are judgments between the middles of their ranks.
    values = np.arange(1, len(totals) + 1, dtype=np.float64)
    at = np.cumsum(totals) - totals / 2 if level == "ordinal" else values
    difference = at[:, None] - at
    if level == "ratio":
        total = at[:, None] + at
        difference = np.divide(difference, total, out=np.zeros_like(total), where=total != 0)
    squared: Numbers = difference**2
    return squared


def _drawn_again(rows: npt.NDArray[Any], seed: int) -> tuple[npt.NDArray[Any], Numbers]:
    """The distinct rows, and how often each is drawn, (B, n): as if all rows were drawn again."""
    kinds, number = np.unique(rows, axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(rows), number / len(rows), RESAMPLES)
    return kinds, drawn.astype(np.float64)


def _estimate(value: float, again: Numbers, number: int) -> Estimate:
    again = again[~np.isnan(again)]
    if math.isnan(value) or not len(again):
        return Estimate(value, math.nan, math.nan, number)
    low, high = np.percentile(again, _EDGES)
    return Estimate(value, float(low), float(high), number)
