"""How the uses of each side are shared among groups, and which groups moved.

    in    the group of each use, for two sides
    out   the Jensen-Shannon divergence in bits, and for each group its share on each side

Uses of one document tend to have one sense (Gale, Church and Yarowsky 1992), so 50 of them may tell
hardly more than one. Where documents are given, intervals are as wide as for an effective number of
uses (Kish 1965): their number divided by the design effect, which is how much more a group's share
varies over documents than it would if each use had its group by itself. At most it is such that
each document counts as one: (sum of n)² / sum of n², n being the uses of a document.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Movement: TypeAlias = Literal["appeared", "vanished", "grew", "shrank", "unclear"]
_Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Share:
    """What part of a side's uses a group has."""

    count: int
    share: float
    low: float
    """The true share lies between `low` and `high` with 95 % confidence (Wilson 1927)."""
    high: float


@dataclass(frozen=True, slots=True)
class GroupShares:
    """One group on both sides."""

    group: str
    before: Share
    after: Share
    low: float
    """The true difference lies between `low` and `high` with 95 % confidence (Newcombe 1998)."""
    high: float

    @property
    def difference(self) -> float:
        """How much larger its share is after than before."""
        return self.after.share - self.before.share

    @property
    def movement(self) -> Movement:
        """What happened to it; unclear, if the interval of the difference has 0 in it.

        Each group is judged by itself: of 20 that did not move, one is said to have.
        """
        if self.low <= 0 <= self.high:
            return "unclear"
        if self.difference > 0:
            return "grew" if self.before.count else "appeared"
        return "shrank" if self.after.count else "vanished"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "difference": self.difference, "movement": self.movement}


def compare_shares(
    before: Sequence[Hashable],
    after: Sequence[Hashable],
    documents: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
) -> tuple[GroupShares, ...]:
    """Every group of either side, those that moved furthest first."""
    sides = [[str(group) for group in side] for side in (before, after)]
    counts = [Counter(side) for side in sides]
    fewest = [effective_number(Counter(own).values()) for own in documents or ((0,), (0,))]
    found = []
    for group in sorted(counts[0] | counts[1]):
        effect = design_effect(group, sides, documents) if documents else 1.0
        first, second = (
            _share(side[group], side.total(), max(side.total() / effect, least))
            for side, least in zip(counts, fewest, strict=True)
        )
        found.append(GroupShares(group, first, second, *_difference(first, second)))
    return tuple(sorted(found, key=lambda each: -abs(each.difference)))


def design_effect(
    group: str,
    sides: Sequence[Sequence[str]],
    documents: tuple[Sequence[Hashable], Sequence[Hashable]],
) -> float:
    """How much more a group's share varies over documents than over as many independent uses.

    Of both sides together, each about its own share: a side without the group says nothing.
    """
    observed = expected = 0.0
    for side, names in zip(sides, documents, strict=True):
        is_in = np.array([each == group for each in side], np.float64)
        codes: dict[Hashable, int] = {}
        own = np.array([codes.setdefault(name, len(codes)) for name in names])
        share = is_in.mean()
        off = np.bincount(own, weights=is_in - share)
        observed += float((off**2).sum()) * len(off) / max(1, len(off) - 1)
        expected += float(share * (1 - share)) * len(side)
    return max(1.0, observed / expected) if expected else math.inf


def jensen_shannon(shares: Sequence[GroupShares]) -> float:
    """The divergence of the two sides in bits: 0 if they are equal, 1 if no group is on both."""
    sides = np.array([[each.before.share, each.after.share] for each in shares]).T  # (2, K)
    parts = [_entropy(sides.mean(axis=0)), *(-_entropy(side) / 2 for side in sides)]
    return min(1.0, max(0.0, sum(parts)))  # beyond them by rounding only


def effective_number(sizes: Iterable[int]) -> float:
    """How many independent uses clusters of these sizes are worth, if each has one sense."""
    counted = np.fromiter(sizes, dtype=np.float64)
    return float(counted.sum() ** 2 / (counted**2).sum())


def _entropy(shares: npt.NDArray[np.float64]) -> float:
    """In bits."""
    present = shares[shares > 0]
    return float(-(present * np.log2(present)).sum())


def _share(count: int, of: int, effective: float) -> Share:
    share = count / of
    spread = _Z**2 / effective
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return Share(
        count, share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
    )


def _difference(before: Share, after: Share) -> tuple[float, float]:
    """Newcombe's interval for a difference of shares, from Wilson's for each."""
    difference = after.share - before.share
    down = math.hypot(after.share - after.low, before.high - before.share)
    up = math.hypot(after.high - after.share, before.share - before.low)
    return difference - down, difference + up
