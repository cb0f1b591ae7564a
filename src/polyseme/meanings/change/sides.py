"""One word in two sets of texts: all its uses grouped together, then the sets compared.

    in   uses of both sides, which of them are before and which after, and what describes them
    out  `WordChange`: the change that was measured, and the groups with their lines

Groups are those of all uses together, so that a group is the same meaning on both sides. Distances
are those of substitutes: what the model expects in a use's place. Topics are left out, since two
periods write of different things with the same words; so are contexts, which tell people's
judgements of change less well (`benchmarks/change.py`).
"""

import contextlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from polyseme.display import counted, summary
from polyseme.errors import InputError
from polyseme.meanings.change.controls import Controls, Sides, controls_of
from polyseme.meanings.change.measure import AgainstControls, Change, Side, Unit, measure_change
from polyseme.meanings.concordance.conditions import ColumnValues
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import Describer, Floats, Labels, UseFeatures
from polyseme.meanings.groups.grouping import MIN_USES, group_uses, join_views
from polyseme.meanings.groups.named_groups import Senses, find_senses, name_groups
from polyseme.progress import Progress

MIN_SIDE = MIN_USES // 2
"""Uses that each side needs: of 20 a side, large changes are found and small ones missed."""
RIVAL_SHARE = 1 / 3
"""What part of a side one author, or another value of a column, must have to be told."""
_MAX_SIDE = 2_500  # uses of a side that are described, sampled by seed
_GROUPS_IF_ONE = 4  # of a word that is beyond its controls, to see what moved


@dataclass(frozen=True, slots=True)
class Rival:
    """What may be the reason of a change in the place of time: one author, one genre, one text."""

    side: Literal["before", "after"]
    column: str
    value: str
    share: float
    """Of the side's uses."""
    without: AgainstControls | None = None
    """What is found without these uses; None if that was not asked, or too few are left."""

    def __str__(self) -> str:
        return (
            f"{self.share:.0%} of the uses {self.side} are of one {self.column}, {self.value}."
            f"{self.told_without}"
        )

    @property
    def told_without(self) -> str:
        """What is found without these uses, in a sentence."""
        if self.without is None:
            return ""
        if self.without.is_beyond:
            return " Without them they differ as much."
        return " Without them the uses differ as much as those of ordinary words do."


@dataclass(frozen=True, eq=False)
class WordChange:
    """How the uses of a word moved between two sides."""

    change: Change
    senses: Senses
    """All uses in groups: first those before, then those after."""
    num_before: int
    """How many of `senses.uses` are of the side before."""
    rivals: tuple[Rival, ...] = ()

    def __repr__(self) -> str:
        return summary("WordChange", repr(self.change), repr(self.senses))

    def _repr_html_(self) -> str:
        return self.change._repr_html_() + self.senses._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rivals = [str(rival) for rival in self.rivals]
        return {"change": self.change.to_json(), "rivals": rivals, **self.senses.to_json()}


def compare_sides(
    uses: Uses,
    sides: Sides | tuple[Labels, Labels],
    describer: Describer,
    *,
    unit: Unit | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> WordChange:
    """Group the uses of both sides together, and measure how far the sides are apart.

    `sides`: conditions; or the numbers of the uses of either, which are then not compared with
    other words of the corpus.
    """
    before, after = sides.numbers(uses) if isinstance(sides, Sides) else sides
    _check_sides(before, after)
    random = np.random.default_rng(seed)
    first, second = (np.sort(random.permutation(side)[:_MAX_SIDE]) for side in (before, after))
    chosen, edge = uses.select(np.concatenate([first, second])), len(first)
    senses = find_senses(chosen, describer, seed=seed, progress=progress)
    two = TwoSides(chosen, senses.features, (np.arange(edge), np.arange(edge, len(chosen))))
    if isinstance(sides, Sides) and uses.corpus is not None:
        counts = len(before), len(after)
        controls = controls_of(uses.corpus, describer, sides, counts, progress)
        two = replace(two, controls=controls, told_apart_by=frozenset(sides.columns))
    change, senses = two.compare(senses, unit=unit, seed=seed)
    return WordChange(change, senses, edge, two.rivals(change))


@dataclass(frozen=True, eq=False)
class TwoSides:
    """Uses of a word on two sides, however they are grouped."""

    uses: Uses
    features: UseFeatures
    numbers: tuple[Labels, Labels]
    """The uses before and after."""
    controls: Controls | None = None
    told_apart_by: frozenset[str] = frozenset()
    """Columns that the sides were chosen by, which are no rivals."""

    def compare(
        self, senses: Senses, *, unit: Unit | None = None, seed: int = 1
    ) -> tuple[Change, Senses]:
        """As `measure`; if one group moved beyond control words, split to see which uses did."""
        change = self.measure(senses.labels, unit=unit, seed=seed)
        is_beyond = change.controls is not None and change.controls.is_beyond
        if not (is_beyond and senses.grouping.is_one_meaning):
            return change, senses
        with contextlib.suppress(InputError):  # uses that are nearly all the same
            senses = _split(senses, seed)
        return self.measure(senses.labels, unit=unit, seed=seed), senses

    def measure(
        self, groups: Sequence[Hashable], *, unit: Unit | None = None, seed: int = 1
    ) -> Change:
        """How far apart they are, and which groups moved."""
        vectors, documents = substitute_vectors(self.features, seed), self.uses.metadata(DOCUMENT)
        sides = [
            Side(vectors[side], [documents[n] for n in side], [groups[n] for n in side])
            for side in self.numbers
        ]
        found = measure_change(*sides, unit=unit, seed=seed)
        return replace(found, controls=self._rank(self.numbers, seed))

    def rivals(self, change: Change) -> tuple[Rival, ...]:
        """Of each side the value that most of its uses have in common, and the other's have not.

        Columns of numbers are left out: a year is no rival.
        """
        found = []
        before, after = self.numbers
        for name, own, other in (("before", before, after), ("after", after, before)):
            shares: list[tuple[float, str, str]] = []
            for column in self.uses.columns:
                values = [value or "" for value in self.uses.metadata(column)]
                is_chosen = column in {DOCUMENT, *self.told_apart_by}
                if is_chosen or ColumnValues(values).numbers is not None:
                    continue
                [(value, count)] = Counter(values[n] for n in own).most_common(1)
                share = count / len(own)
                elsewhere = sum(values[n] == value for n in other) / len(other)
                if value and share >= RIVAL_SHARE and elsewhere < share / 2:
                    shares.append((share, column, value))
            if shares:
                share, column, value = max(shares, key=lambda each: each[0])  # the first of equals
                without = None if change.verdict == "alike" else self._without(column, value)
                side: Literal["before", "after"] = "before" if name == "before" else "after"
                found.append(Rival(side, column, value, share, without))
        return tuple(found)

    def _without(self, column: str, value: str) -> AgainstControls | None:
        is_other = np.array([each != value for each in self.uses.metadata(column)])
        before, after = (side[is_other[side]] for side in self.numbers)
        return self._rank((before, after))

    def _rank(self, numbers: tuple[Labels, Labels], seed: int = 1) -> AgainstControls | None:
        if self.controls is None:
            return None
        forms = self.uses.query.forms if self.uses.query else ()
        documents = self.uses.metadata(DOCUMENT)
        return self.controls.rank(self.features, numbers, documents, forms, seed)


def substitute_vectors(features: UseFeatures, seed: int) -> Floats:
    """(N, D) of length one: what stands for a use in distances; contexts, if nothing else does."""
    if features.substitutes is None:
        return join_views(replace(features, topic=None), seed=seed)
    nothing = np.empty((len(features), 0), np.float32)
    return join_views(UseFeatures(nothing, nothing, features.substitutes), seed=seed)


def _split(senses: Senses, seed: int) -> Senses:
    """A word whose uses are one group, in some groups all the same."""
    limits = senses.calibration.limits if senses.calibration else None
    source = senses.name_source
    grouping = group_uses(
        senses.features,
        num_groups=_GROUPS_IF_ONE,
        seed=seed,
        limits=limits,
        copy_of=source.copy_of if source else None,
    )
    note = (
        "By themselves these uses are one group. As they moved, they are split, to show which did."
    )
    return replace(
        senses,
        grouping=grouping,
        groups=name_groups(source, grouping),
        source_notes=(*senses.source_notes, note),
    )


def _check_sides(before: Labels, after: Labels) -> None:
    """Refuse sides that share uses, or have too few."""
    if both := np.intersect1d(before, after).size:
        raise InputError(
            f"The sides share {counted(both, 'use')}. Choose sides that exclude each other."
        )
    for name, side in (("before", before), ("after", after)):
        if len(side) < MIN_SIDE:
            raise InputError(
                f"The side {name!r} has {counted(len(side), 'use')}; each side needs at least "
                f"{MIN_SIDE}. Choose a wider side, or look for more forms of the word."
            )
