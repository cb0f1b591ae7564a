"""Did a word change between two sets of uses?

    in    for each side the features of its uses, (N, D), the document of each, the group of each
    out   how far the sides are apart, whether chance alone would do that, which groups moved

APD is the average cosine distance between a use of one side and a use of the other; PRT the cosine
distance of the sides' mean vectors (Kutuzov and Giulianelli 2020; Schlechtweg et al. 2020). Neither
says by itself whether a word changed: uses of one sense differ, too. So uses are shuffled between
the sides, again and again, and the p-value is the share of shuffles that are as far apart.

Where documents are known, whole documents are shuffled. Uses of one document are alike in author,
topic and genre. Shuffled one by one they would mix all authors on both sides, so any two sets of
texts would seem further apart than chance, and a matter of style be taken for change.

That test is of the texts as much as of the word. So a word's verdict is by control words, if they
were measured (`controls.py`): it changed if it moved further than nine of ten of them, and if the
share of a group moved as well.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError, extra_needed_for

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
            wilson_share(side[group], side.total(), max(side.total() / effect, least))
            for side, least in zip(counts, fewest, strict=True)
        )
        found.append(GroupShares(group, first, second, *_difference(first, second)))
    return tuple(sorted(found, key=lambda each: -abs(each.difference)))


def design_effect(
    group: str,
    sides: Sequence[Sequence[str]],
    documents: Sequence[Sequence[Hashable]],
) -> float:
    """How much more a group's share varies over documents than over as many independent uses.

    Of all sides together, each about its own share: a side without the group says nothing.
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


def wilson_share(count: int, of: int, effective: float) -> Share:
    """A share with its interval, for as many independent uses as they are worth (Wilson 1927)."""
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


Features: TypeAlias = npt.NDArray[Any]
Unit: TypeAlias = Literal["documents", "uses"]

Verdict: TypeAlias = Literal["changed", "apart", "alike"]
"""Apart: beyond the control words, but no group's share moved. Alike: no further than they."""

SENTENCES = {
    "changed": (
        "“{word}” changed more than {below} of {number} words of like frequency (p = {p})."
    ),
    "apart": (
        "The uses of “{word}” differ more than those of {below} of {number} words of like "
        "frequency (p = {p}), but no group’s share moved beyond its interval: that may be style or "
        "topic."
    ),
    "alike": (
        "The uses of “{word}” differ as much as those of ordinary words do: more than those of "
        "{below} of {number} words of like frequency (p = {p})."
    ),
    "changed_alone": (
        "The sides differ by more than chance explains (p = {p}), and the share of a group moved. "
        "There are too few words of like frequency to compare “{word}” with."
    ),
    "apart_alone": (
        "The sides differ by more than chance explains (p = {p}), but no group’s share moved "
        "beyond its interval. There are too few words of like frequency to compare “{word}” with."
    ),
    "alike_alone": "Chance alone could explain this difference (p = {p}).",
}
"""What a verdict says, with control words and without."""
BEYOND = 0.1
"""A word is beyond its controls if it moved further than nine of ten."""
SIGNIFICANT = 0.05
MAX_USES = 1_000
"""Uses of a side that are compared; of more, so many are drawn."""
MIN_DOCUMENTS = 5
"""Of a side, to shuffle documents unasked. Two times four can give no p-value below 2 / 70."""
Values: TypeAlias = npt.NDArray[np.float64]
_ROOM = 1 << 22  # numbers in hand at once: 32 MB
_TINY = 1e-12  # equal distances may differ by rounding


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The uses of one side: a period, an author, a corpus."""

    features: Features  # (N, D)
    documents: Sequence[Hashable] | None = None
    """The document of each use. Those of the other side are others, even if named alike."""
    groups: Sequence[Hashable] | None = None  # the group of each use


@dataclass(frozen=True, slots=True)
class SideCounts:
    """What a side was made of."""

    uses: int
    compared: int
    """Uses that distances were measured on: a sample, where there are more than `MAX_USES`."""
    documents: int | None
    """None, if they were not given."""
    distance_within: float
    """Average cosine distance between two uses of this side."""


@dataclass(frozen=True, slots=True)
class AgainstControls:
    """How far a word moved, beside control words (`controls.py`)."""

    below: int  # control words that moved less far
    number: int
    uses: int  # of each side, of this word as of each control
    own_side: float  # which part of the nearest neighbours of a use is of its own side, on average

    @property
    def p_value(self) -> float:
        """How probable it would be to move as far, if it were one of them."""
        return (1 + self.number - self.below) / (1 + self.number)

    @property
    def is_beyond(self) -> bool:
        """Whether it moved further than nine of ten."""
        return self.p_value <= BEYOND


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """How far a word's uses on two sides are apart."""

    apd: float
    """Average cosine distance between a use before and a use after."""
    apd_low: float
    """The true one lies between `apd_low` and `apd_high` with 95 % confidence (bootstrap)."""
    apd_high: float
    apd_by_chance: float
    """What it is on average after shuffling: about this, if nothing changed."""
    prt: float
    """Cosine distance of the mean vectors."""
    p_value: float
    """How probable sides at least as far apart would be if nothing had changed."""
    unit: Unit
    """What was shuffled and resampled."""
    permutations: int
    seed: int
    before: SideCounts
    after: SideCounts
    jsd: float | None
    """Jensen-Shannon divergence of the shares of groups, in bits; None without groups.

    Of all uses, not of a sample. A few uses per group make it larger than 0 by chance alone.
    """
    groups: tuple[GroupShares, ...]
    controls: AgainstControls | None = None
    """None, if there were none to compare with."""

    @property
    def verdict(self) -> Verdict:
        """By control words and groups; without control words, by chance and groups."""
        is_beyond = self.controls.is_beyond if self.controls else self.p_value < SIGNIFICANT
        if not is_beyond:
            return "alike"
        return "changed" if any(each.movement != "unclear" for each in self.groups) else "apart"

    def sentence(self, word: str) -> tuple[str, dict[str, object]]:
        """What to say of it: a key of `SENTENCES`, and what is put into that sentence."""
        found = self.controls
        if found is None:
            return f"{self.verdict}_alone", {"word": word, "p": f"{self.p_value:.3f}"}
        values = {"word": word, "below": found.below, "number": found.number}
        return self.verdict, values | {"p": f"{found.p_value:.2f}"}

    def __repr__(self) -> str:
        return summary("Change", *(f"{name} {value}" for name, value in self.facts()))

    def _repr_html_(self) -> str:
        header = ("group", "uses before", "uses after", "share before", "share after", "movement")
        rows = [
            (
                *(each.group, each.before.count, each.after.count),
                *(each.before.share, each.after.share, each.movement),
            )
            for each in self.groups
        ]
        below = html_table("Groups", rows, header) if rows else ""
        return html_table("Change", self.facts()) + below

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = self.controls
        controls = None if found is None else {**asdict(found), "p_value": found.p_value}
        groups = [each.to_json() for each in self.groups]
        return {**asdict(self), "groups": groups, "controls": controls, "verdict": self.verdict}

    def facts(self) -> list[tuple[str, str]]:
        """The measures, each with its value in words."""
        jsd = [] if self.jsd is None else [("JSD", f"{self.jsd:.3f} bits")]
        found = self.controls
        controls = []
        if found is not None:
            told = (
                f"{found.below} of {found.number} moved less, by {found.uses} uses a side: "
                f"{found.own_side:.0%} of a use's neighbours are of its own side (p = "
                f"{found.p_value:.2f})"
            )
            controls = [("control words", told)]
        return [
            ("APD", f"{self.apd:.3f} ({self.apd_low:.3f} to {self.apd_high:.3f})"),
            ("APD by chance", f"{self.apd_by_chance:.3f}"),
            ("PRT", f"{self.prt:.3f}"),
            ("p", f"{self.p_value:.3f} ({self.permutations:,} permutations of {self.unit})"),
            *jsd,
            *controls,
            ("before", _told(self.before)),
            ("after", _told(self.after)),
        ]


def measure_change(
    before: Side, after: Side, *, unit: Unit | None = None, permutations: int = 999, seed: int = 0
) -> Change:
    """Compare the uses of two sides; with the sides swapped, all numbers are the same.

    `unit`: what is shuffled and resampled. If not given, documents where each side has five or
    more, and else uses: then a difference between two authors may be taken for change.
    """
    unit = _choose_unit(unit, before, after)
    sides = [_sampled(side, seed) for side in (before, after)]
    units = [_units(side, unit) for side in sides]
    # In an order of their own, so that the same is drawn whichever side comes first.
    pair = sorted(units, key=lambda each: (len(each.sizes), each.sums.tobytes()))
    generator = np.random.default_rng(seed)
    observed = distances(*(each.total() for each in pair))
    by_chance = shuffled(*pair, number=permutations, generator=generator)
    again = resampled(*pair, number=permutations, generator=generator)
    as_far = int((by_chance.shift >= observed.shift - _TINY).sum())
    groups = _shares(before, after, unit)
    return Change(
        apd=float(observed.apd[0]),
        apd_low=float(np.quantile(again.apd, 0.025)),
        apd_high=float(np.quantile(again.apd, 0.975)),
        apd_by_chance=float(by_chance.apd.mean()),
        prt=prototype_distance(*pair),
        p_value=(1 + as_far) / (1 + permutations),  # the observed sides are one of the shuffles
        unit=unit,
        permutations=permutations,
        seed=seed,
        before=_counts(before, sides[0]),
        after=_counts(after, sides[1]),
        jsd=jensen_shannon(groups) if groups else None,
        groups=groups,
    )


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """P-values of many words, adjusted: among those up to q, a share of q are false on average."""
    with extra_needed_for("Adjusting the p-values of many words"):
        from scipy.stats import false_discovery_control
    return false_discovery_control(p_values).tolist() if len(p_values) else []


def _num_documents(side: Side) -> int | None:
    return None if side.documents is None else len(set(side.documents))


def _choose_unit(asked: Unit | None, before: Side, after: Side) -> Unit:
    numbers = [_num_documents(side) or 0 for side in (before, after)]
    if asked is None:
        return "documents" if min(numbers) >= MIN_DOCUMENTS else "uses"
    if asked == "documents" and min(numbers) < 2:
        raise InputError(
            f"To shuffle documents, each side needs two or more; these have {numbers[0]:,} and "
            f'{numbers[1]:,}. Give the document of each use, or ask for unit="uses".'
        )
    return asked


def _sampled(side: Side, seed: int) -> Side:
    """At most `MAX_USES` uses, of unit length. A use without features stays all zeros."""
    features = np.asarray(side.features, dtype=np.float64)
    documents = side.documents
    if len(features) > MAX_USES:
        drawn = np.random.default_rng(seed).choice(len(features), MAX_USES, replace=False)
        drawn.sort()
        features = features[drawn]
        documents = None if documents is None else [documents[index] for index in drawn]
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return Side(features / np.where(lengths > 0, lengths, 1.0), documents)


def _units(side: Side, unit: Unit) -> "ShuffleUnits":
    if unit == "uses" or side.documents is None:
        return ShuffleUnits(side.features, np.ones(len(side.features)))
    number: dict[Hashable, int] = {}
    index = [number.setdefault(document, len(number)) for document in side.documents]
    return ShuffleUnits.clustered(side.features, np.array(index))


def _shares(before: Side, after: Side, unit: Unit) -> tuple[GroupShares, ...]:
    if before.groups is None or after.groups is None:
        return ()
    documents = (before.documents or (), after.documents or ()) if unit == "documents" else None
    return compare_shares(before.groups, after.groups, documents)


def _counts(given: Side, compared: Side) -> SideCounts:
    return SideCounts(
        uses=len(given.features),
        compared=len(compared.features),
        documents=_num_documents(given),
        distance_within=distance_within(compared.features),
    )


def _told(side: SideCounts) -> str:
    sample = f", {side.compared:,} of them compared" if side.compared < side.uses else ""
    documents = "" if side.documents is None else f" in {counted(side.documents, 'document')}"
    return f"{counted(side.uses, 'use')}{documents}{sample}"


# Distances, observed, shuffled and resampled, all from sums: features have unit length, so the mean
# cosine of all pairs of uses is the product of the sides' mean vectors. A shuffle is then a row of
# zeros and ones, and R shuffles are one matrix product.


class ShuffleUnits(NamedTuple):
    """What is shuffled as a whole: uses, or documents with all their uses."""

    sums: Values  # (U, D): the features of each unit's uses, summed
    sizes: Values  # (U,): how many uses that is

    @classmethod
    def clustered(cls, features: Values, index: npt.NDArray[np.int64]) -> "ShuffleUnits":
        """Uses in clusters: `index` has the number of each use's cluster."""
        sizes = np.bincount(index).astype(np.float64)
        sums = np.zeros((len(sizes), features.shape[1]))
        np.add.at(sums, index, features)
        return cls(sums, sizes)

    def weighted(self, weights: Values) -> "ShuffleUnits":
        """(R, U) -> R sides: each a sum of units, every unit so many times."""
        return ShuffleUnits(weights @ self.sums, weights @ self.sizes)

    def total(self) -> "ShuffleUnits":
        """All as one side."""
        return self.weighted(np.ones((1, len(self.sizes))))


class Distances(NamedTuple):
    """Of R pairs of sides, each (R,)."""

    apd: Values  # average cosine distance of a use of one side from a use of the other
    shift: Values
    """Half the squared distance of the mean vectors: APD less the mean distance within the sides.

    The statistic of the test. Between sides of one size it puts shuffles in the order that APD
    does. Between others APD varies with where the smaller side's mean happens to lie, change or
    not, and finds half as many changes (400 uses against 50).
    """


def distances(first: ShuffleUnits, second: ShuffleUnits) -> Distances:
    """Of R sides from R others."""
    one, two = (side.sums / side.sizes[:, None] for side in (first, second))  # (R, D)
    return Distances(1.0 - (one * two).sum(axis=1), ((one - two) ** 2).sum(axis=1) / 2)


def prototype_distance(first: ShuffleUnits, second: ShuffleUnits) -> float:
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
    first: ShuffleUnits, second: ShuffleUnits, *, number: int, generator: np.random.Generator
) -> Distances:
    """Distances after units have changed sides at random; as many stay on each side as were."""
    pool = ShuffleUnits(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))
    whole = pool.total()

    def parts() -> Iterator[Distances]:
        for rows in _rows(pool, number):
            is_first = np.zeros((rows, len(pool.sizes)))
            is_first[:, : len(first.sizes)] = 1.0
            side = pool.weighted(generator.permuted(is_first, axis=1, out=is_first))
            yield distances(side, ShuffleUnits(whole.sums - side.sums, whole.sizes - side.sizes))

    return _joined(parts())


def resampled(
    first: ShuffleUnits, second: ShuffleUnits, *, number: int, generator: np.random.Generator
) -> Distances:
    """Distances after the units of each side have been drawn again with replacement."""
    larger = max((first, second), key=lambda side: len(side.sizes))

    def parts() -> Iterator[Distances]:
        for rows in _rows(larger, number):
            one, two = (s.weighted(_draws(len(s.sizes), rows, generator)) for s in (first, second))
            yield distances(one, two)

    return _joined(parts())


def _rows(units: ShuffleUnits, number: int) -> Iterator[int]:
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
