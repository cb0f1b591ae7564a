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
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError, extra_needed_for
from polyseme.meanings.change.permutation import (
    Units,
    distance_within,
    distances,
    prototype_distance,
    resampled,
    shuffled,
)
from polyseme.meanings.change.shares import GroupShares, compare_shares, jensen_shannon

Features: TypeAlias = npt.NDArray[Any]
Unit: TypeAlias = Literal["documents", "uses"]

MAX_USES = 1_000
"""Uses of a side that are compared; of more, so many are drawn."""
MIN_DOCUMENTS = 5
"""Of a side, to shuffle documents unasked. Two times four can give no p-value below 2 / 70."""
_TINY = 1e-12  # equal distances may differ by rounding
_MOST_UNEQUAL = 2.0  # words differ in frequency by at most this factor to be controls


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The uses of one side: a period, an author, a corpus."""

    features: Features
    """(N, D)"""
    documents: Sequence[Hashable] | None = None
    """The document of each use. Those of the other side are others, even if named alike."""
    groups: Sequence[Hashable] | None = None
    """The group of each use."""


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
        return {**asdict(self), "groups": [each.to_json() for each in self.groups]}

    def facts(self) -> list[tuple[str, str]]:
        """The measures, each with its value in words."""
        jsd = [] if self.jsd is None else [("JSD", f"{self.jsd:.3f} bits")]
        return [
            ("APD", f"{self.apd:.3f} ({self.apd_low:.3f} to {self.apd_high:.3f})"),
            ("APD by chance", f"{self.apd_by_chance:.3f}"),
            ("PRT", f"{self.prt:.3f}"),
            ("p", f"{self.p_value:.3f} ({self.permutations:,} permutations of {self.unit})"),
            *jsd,
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
    _check(before, after, permutations)
    unit = _choose_unit(before, after) if unit is None else _check_unit(unit, before, after)
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
    values = np.asarray(p_values, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(
            f"P-values lie between 0 and 1; these reach from {values.min()} to {values.max()}."
        )
    return [float(value) for value in false_discovery_control(values)] if len(values) else []


def frequency_matched(counts: Mapping[str, tuple[int, int]], word: str, number: int) -> list[str]:
    """Control words, nearest first: at most twice or half as frequent, before and after.

    `counts` has how often each word occurs before and after. Two corpora differ in topic and genre,
    so that most words seem to change; a change is worth telling if it exceeds that of the controls.
    """
    if word not in counts:
        raise InputError(f"{word!r} has no counts, so no words of its frequency can be found.")

    words = sorted(counts)
    table = np.array([counts[each] for each in words], np.float64)
    return [words[place] for place in frequency_matches(table, words.index(word), number)]


def frequency_matches(counts: npt.NDArray[np.float64], row: int, number: int) -> list[int]:
    """As `frequency_matched`, in a table (V, 2) of how often each word is before and after."""
    logs = np.log(counts + 1)
    apart = np.abs(logs - logs[row]).max(axis=1)
    apart[row] = np.inf
    near = np.argsort(apart, kind="stable")[:number]
    return [int(place) for place in near if apart[place] <= math.log(_MOST_UNEQUAL) + _TINY]


def _check(before: Side, after: Side, permutations: int) -> None:
    for side in (before, after):
        shape = side.features.shape
        if len(shape) != 2 or shape[0] < 2 or shape[1:] != before.features.shape[1:]:
            raise InputError(
                "Each side needs two or more uses, with features of the same dimension; these "
                f"have the shapes {before.features.shape} and {after.features.shape}."
            )
        if not np.isfinite(side.features).all():
            raise InputError("Features hold numbers that are not finite. Recompute them.")
        for name, given in (("document", side.documents), ("group", side.groups)):
            if given is not None and len(given) != shape[0]:
                raise InputError(f"Each use has one {name}: {shape[0]:,}, not {len(given):,}.")
    for name, one, two in (
        ("documents", before.documents, after.documents),
        ("groups", before.groups, after.groups),
    ):
        if (one is None) != (two is None):
            raise InputError(f"Give the {name} of both sides, or of neither.")
    if permutations < 1:
        raise InputError(f"{permutations} permutations show nothing. Ask for 199 or more.")


def _num_documents(side: Side) -> int | None:
    return None if side.documents is None else len(set(side.documents))


def _choose_unit(before: Side, after: Side) -> Unit:
    numbers = [_num_documents(side) or 0 for side in (before, after)]
    return "documents" if min(numbers) >= MIN_DOCUMENTS else "uses"


def _check_unit(unit: Unit, before: Side, after: Side) -> Unit:
    numbers = [_num_documents(side) or 0 for side in (before, after)]
    if unit == "documents" and min(numbers) < 2:
        raise InputError(
            f"To shuffle documents, each side needs two or more; these have {numbers[0]:,} and "
            f'{numbers[1]:,}. Give the document of each use, or ask for unit="uses".'
        )
    return unit


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


def _units(side: Side, unit: Unit) -> Units:
    if unit == "uses" or side.documents is None:
        return Units(side.features, np.ones(len(side.features)))
    number: dict[Hashable, int] = {}
    index = [number.setdefault(document, len(number)) for document in side.documents]
    return Units.clustered(side.features, np.array(index))


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
