"""Is one system better than another, or was the test set kind to it? The paired bootstrap.

    in    the scores of two systems on the same examples
    out   their difference, an interval for it, and a p-value

Examples are drawn again with replacement, the same for both systems, again and again; how much the
difference varies then is how much it would vary between test sets (Efron and Tibshirani 1993,
chapter 16; Koehn 2004). Only sums over examples are needed, so 10,000 draws take a second.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.errors import InputError
from polyseme.tasks.measures import ExampleScores, Values

Statistics: TypeAlias = npt.NDArray[Any]
# Numbers in hand at once: 32 MB in float64.
_ROOM = 1 << 22
# Differences of equal counts may differ by rounding.
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems by one measure."""

    measure: str
    first: float
    second: float
    low: float
    """The true difference lies between `low` and `high` with 95 % confidence."""
    high: float
    p_value: float
    """How probable a difference at least this large, either way, would be between equals."""
    resamples: int

    @property
    def difference(self) -> float:
        """How much better the second is."""
        return self.second - self.first


def compare(
    first: ExampleScores,
    second: ExampleScores,
    *,
    measure: str,
    resamples: int = 10_000,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
) -> Comparison:
    """Compare two systems' scores of the same examples in the same order.

    `groups` names for each example the sentence it comes from, where several come from one, as
    predicates do: they rise and fall together, so they are drawn together.
    """
    _check_same(first, second)
    both = (first, second)
    statistics = [each.statistics(measure) for each in both]
    if groups is not None:
        statistics = [_grouped(one, groups) for one in statistics]
    pairs = list(zip(both, statistics, strict=True))
    values = [each.value(measure) for each in both]
    observed = values[1] - values[0]
    parts = [
        np.diff([each.value_of(_sums(own, draws), measure) for each, own in pairs], axis=0)[0]
        for draws in _draws(len(statistics[0]), resamples, seed)
    ]
    differences = np.concatenate(parts)
    # Between equals the differences would lie around 0 as they now lie around the observed one.
    as_large = np.abs(differences - observed) >= abs(observed) - _TINY
    low, high = np.quantile(differences, [0.025, 0.975])
    return Comparison(
        measure=measure,
        first=values[0],
        second=values[1],
        low=float(low),
        high=float(high),
        # With the observed difference as one of the draws, p is never 0.
        p_value=(1 + int(as_large.sum())) / (1 + resamples),
        resamples=resamples,
    )


def _check_same(first: ExampleScores, second: ExampleScores) -> None:
    if not len(first) or not first.has_examples_of(second):
        raise InputError(
            f"Two systems can only be compared on the same examples; these saw {len(first):,} and "
            f"{len(second):,}, or such as have other gold labels."
        )


def _grouped(statistics: Statistics, groups: Sequence[Hashable]) -> Statistics:
    number: dict[Hashable, int] = {}
    places = [number.setdefault(group, len(number)) for group in groups]
    assert len(places) == len(statistics), (len(places), len(statistics))
    total = np.zeros((len(number), *statistics.shape[1:]), dtype=statistics.dtype)
    np.add.at(total, places, statistics)
    return total


def _draws(num_examples: int, resamples: int, seed: int) -> Iterator[Values]:
    """(R, N) in parts of bounded size: how often each example is in each resample."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _ROOM // num_examples)
    for begin in range(0, resamples, at_once):
        rows = min(at_once, resamples - begin)
        drawn = generator.integers(num_examples, size=(rows, num_examples))
        drawn += np.arange(rows)[:, None] * num_examples
        often = np.bincount(drawn.ravel(), minlength=rows * num_examples)
        yield often.reshape(rows, num_examples).astype(np.float64)


def _sums(statistics: Statistics, draws: Values) -> Values:
    """(N, ...), (R, N) -> (R, ...): the sums of each resample."""
    sums: Values = draws @ statistics.reshape(len(statistics), -1)
    return sums.reshape(-1, *statistics.shape[1:])
