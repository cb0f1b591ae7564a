"""Distances between two sides, observed, shuffled and resampled, all from sums.

    in    units, each the sum of the features of one or more uses, for two sides
    out   distances of R pairs of sides

Features have unit length, so the mean cosine of all pairs of uses is the product of the sides' mean
vectors. A shuffle is then a row of zeros and ones, and R shuffles are one matrix product.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[np.float64]
_ROOM = 1 << 22  # numbers in hand at once: 32 MB


class Units(NamedTuple):
    """What is shuffled as a whole: uses, or documents with all their uses."""

    sums: Values
    """(U, D): the features of each unit's uses, summed."""
    sizes: Values
    """(U,): how many uses that is."""

    @classmethod
    def clustered(cls, features: Values, index: npt.NDArray[np.int64]) -> "Units":
        """Uses in clusters: `index` has the number of each use's cluster."""
        sizes = np.bincount(index).astype(np.float64)
        sums = np.zeros((len(sizes), features.shape[1]))
        np.add.at(sums, index, features)
        return cls(sums, sizes)

    def weighted(self, weights: Values) -> "Units":
        """(R, U) -> R sides: each a sum of units, every unit so many times."""
        return Units(weights @ self.sums, weights @ self.sizes)

    def total(self) -> "Units":
        """All as one side."""
        return self.weighted(np.ones((1, len(self.sizes))))


class Distances(NamedTuple):
    """Of R pairs of sides, each (R,)."""

    apd: Values
    """Average cosine distance of a use of one side from a use of the other."""
    shift: Values
    """Half the squared distance of the mean vectors: APD less the mean distance within the sides.

    The statistic of the test. Between sides of one size it puts shuffles in the order that APD
    does. Between others APD varies with where the smaller side's mean happens to lie, change or
    not, and finds half as many changes (400 uses against 50).
    """


def distances(first: Units, second: Units) -> Distances:
    """Of R sides from R others."""
    one, two = (side.sums / side.sizes[:, None] for side in (first, second))  # (R, D)
    return Distances(1.0 - (one * two).sum(axis=1), ((one - two) ** 2).sum(axis=1) / 2)


def prototype_distance(first: Units, second: Units) -> float:
    """Cosine distance of the mean vectors of two sides; 1, if one of them is zero."""
    one, two = (side.sums.sum(axis=0) for side in (first, second))
    lengths = np.linalg.norm(one) * np.linalg.norm(two)
    return float(1.0 - one @ two / lengths) if lengths > 0 else 1.0


def distance_within(features: Values) -> float:
    """Average cosine distance of two different uses."""
    number = len(features)
    total = features.sum(axis=0)
    return float(1.0 - (total @ total - (features**2).sum()) / (number * (number - 1)))


def shuffled(
    first: Units, second: Units, *, number: int, generator: np.random.Generator
) -> Distances:
    """Distances after units have changed sides at random; as many stay on each side as were."""
    pool = Units(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))
    whole = pool.total()

    def parts() -> Iterator[Distances]:
        for rows in _rows(pool, number):
            is_first = np.zeros((rows, len(pool.sizes)))
            is_first[:, : len(first.sizes)] = 1.0
            side = pool.weighted(generator.permuted(is_first, axis=1, out=is_first))
            yield distances(side, Units(whole.sums - side.sums, whole.sizes - side.sizes))

    return _joined(parts())


def resampled(
    first: Units, second: Units, *, number: int, generator: np.random.Generator
) -> Distances:
    """Distances after the units of each side have been drawn again with replacement."""
    larger = max((first, second), key=lambda side: len(side.sizes))

    def parts() -> Iterator[Distances]:
        for rows in _rows(larger, number):
            one, two = (s.weighted(_draws(len(s.sizes), rows, generator)) for s in (first, second))
            yield distances(one, two)

    return _joined(parts())


def _rows(units: Units, number: int) -> Iterator[int]:
    """How many shuffles to do at once, so that memory stays bounded."""
    at_once = max(1, _ROOM // max(units.sums.shape))
    for begin in range(0, number, at_once):
        yield min(at_once, number - begin)


def _draws(num_units: int, rows: int, generator: np.random.Generator) -> Values:
    """(R, U): how often each unit is in each resample."""
    drawn = generator.integers(num_units, size=(rows, num_units))
    drawn += np.arange(rows)[:, None] * num_units
    often = np.bincount(drawn.ravel(), minlength=rows * num_units)
    return often.reshape(rows, num_units).astype(np.float64)


def _joined(parts: Iterable[Distances]) -> Distances:
    return Distances(*(np.concatenate(column) for column in zip(*parts, strict=True)))
