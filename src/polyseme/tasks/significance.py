"""Is one system better than another, or was the test set kind to it? The paired bootstrap.

    in    the tallies of two systems on the same examples
    out   their difference, an interval for it, and a p-value

Examples are drawn anew with replacement, the same for both systems, again and again; how much the
difference varies then is how much it would vary between test sets (Efron and Tibshirani 1993,
chapter 16; Koehn 2004). Only sums of counts are needed, so 10,000 draws take a second.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.errors import InputError
from polyseme.tasks.measures import Counts, Measure, Tally, Values, value_of

# Numbers in hand at once: 32 MB in float64.
_ROOM = 1 << 22
# Differences of equal counts may differ by rounding.
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems by one measure."""

    measure: Measure
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
    first: Tally,
    second: Tally,
    *,
    measure: Measure,
    resamples: int = 10_000,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
) -> Comparison:
    """Compare two systems' tallies of the same examples in the same order.

    `groups` names for each example the sentence it comes from, where several come from one, as
    predicates do: they rise and fall together, so they are drawn together.
    """
    _check_same(first, second)
    counts = [_needed(tally.counts, measure) for tally in (first, second)]
    if groups is not None:
        counts = [_grouped(one, groups) for one in counts]
    values = [float(value_of(one.sum(axis=0), measure)) for one in counts]
    observed = values[1] - values[0]
    differences = np.concatenate(
        [_differences(counts, draws, measure) for draws in _draws(len(counts[0]), resamples, seed)]
    )
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


def _check_same(first: Tally, second: Tally) -> None:
    due = [tally.counts[:, 2].sum(axis=1).tolist() for tally in (first, second)]
    if due[0] != due[1] or not due[0]:
        raise InputError(
            f"Two systems can only be compared on the same examples; these saw {len(due[0]):,} and "
            f"{len(due[1]):,} with {sum(due[0]):,} and {sum(due[1]):,} right answers."
        )


def _needed(counts: Counts, measure: Measure) -> Counts:
    """Only one measure looks at labels apart."""
    return counts if measure == "macro-f1" else counts.sum(axis=-1, keepdims=True)


def _grouped(counts: Counts, groups: Sequence[Hashable]) -> Counts:
    number: dict[Hashable, int] = {}
    places = [number.setdefault(group, len(number)) for group in groups]
    assert len(places) == len(counts), (len(places), len(counts))
    total = np.zeros((len(number), *counts.shape[1:]), dtype=counts.dtype)
    np.add.at(total, places, counts)
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


def _differences(both: list[Counts], draws: Values, measure: Measure) -> Values:
    """(R,): the difference in each resample."""
    values = []
    for counts in both:
        sums = draws @ counts.reshape(len(counts), -1)  # (R, 3 K)
        values.append(value_of(sums.reshape(-1, *counts.shape[1:]), measure))
    return values[1] - values[0]
