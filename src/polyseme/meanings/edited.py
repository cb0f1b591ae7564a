"""Groups as a user left them: those that were found, and what a log of edits did to them.

    in   `Senses`, and edits: rename, merge, split, move, label
    out  `EditedSenses`: groups with their uses by number, and the user's labels

The same groups and the same log give the same result anywhere, on a page or on the command line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.meanings.edits import (
    Edit,
    GroupRef,
    ReplayProblem,
    SplitEdit,
    UseGroup,
    UseId,
    replay,
)
from polyseme.meanings.export import UseTable
from polyseme.meanings.groups import Labels, group_means
from polyseme.meanings.named_groups import NamedGroup, Senses
from polyseme.meanings.uses import Uses


@dataclass(frozen=True, eq=False)
class EditedGroup:
    """A group as it is now."""

    id: str
    """Stays the same when the group is renamed."""
    name: str
    colour: int
    """The same as long as there is the group: found groups by number from 0, then new ones."""
    uses: Labels
    """Numbers of its uses, those nearest to its middle first."""
    share: float
    found: NamedGroup | None
    """The group as it was found; None for one that a split made."""
    is_as_found: bool
    """Whether it has the very uses it was found with."""

    @property
    def ref(self) -> GroupRef:
        """As an edit names it."""
        return GroupRef(id=self.id, name=self.name)


@dataclass(frozen=True, eq=False)
class EditedSenses:
    """The uses of a word in groups that a user may have changed."""

    senses: Senses
    groups: tuple[EditedGroup, ...]
    labels: Mapping[int, str]
    """The user's own, by the number of the use."""
    problems: tuple[ReplayProblem, ...]

    @property
    def group_of(self) -> dict[int, EditedGroup]:
        """The group of each use, by its number."""
        return {int(number): group for group in self.groups for number in group.uses}

    def group(self, id_: str) -> EditedGroup | None:
        """The group of this id."""
        return next((group for group in self.groups if group.id == id_), None)

    def table(self) -> UseTable:
        """The uses, one a row, with the group and the label of each."""
        groups = self.group_of
        numbers = range(len(self.senses.uses))
        return UseTable(
            self.senses.uses,
            {
                "group": [groups[number].id for number in numbers],
                "group_name": [groups[number].name for number in numbers],
                "label": [self.labels.get(number) for number in numbers],
            },
        )


def use_ids(uses: Uses) -> list[UseId]:
    """What stays the same of each use when the corpus grows. Reads its sentences."""
    return [UseId(use.sentence_id, use.begin) for use in uses]


def edit_senses(
    senses: Senses, edits: Sequence[Edit] = (), ids: Sequence[UseId] | None = None
) -> EditedSenses:
    """Apply edits to groups. `ids`: what `use_ids` gives, if it is known already."""
    if not edits:
        labels = senses.grouping.labels
        found = {str(g.number): np.flatnonzero(labels == g.number - 1) for g in senses.groups}
        names = {str(g.number): g.name for g in senses.groups}
        return EditedSenses(senses, _groups(senses, found, names, ()), {}, ())
    ids = use_ids(senses.uses) if ids is None else ids
    numbers: dict[UseId, list[int]] = {}
    for number, use in enumerate(ids):
        numbers.setdefault(use, []).append(number)
    after = replay(_as_found(senses, numbers), edits)
    members = {
        id_: np.array(sorted(n for use in group.uses for n in numbers[use]), np.int64)
        for id_, group in after.groups.items()
    }
    names = {id_: group.name for id_, group in after.groups.items()}
    by_hand = {n: label for use, label in after.labels.items() for n in numbers[use]}
    groups = _groups(senses, members, names, edits)
    return EditedSenses(senses, groups, by_hand, after.problems)


def _as_found(senses: Senses, numbers: Mapping[UseId, Sequence[int]]) -> dict[str, UseGroup]:
    """Uses that begin at the same word, as "bank" and "bank account" do, go together."""
    found: dict[str, set[UseId]] = {str(group.number): set() for group in senses.groups}
    for use, (first, *_) in numbers.items():
        found[str(senses.grouping.labels[first] + 1)].add(use)
    return {
        str(group.number): UseGroup(group.name, frozenset(found[str(group.number)]))
        for group in senses.groups
        if found[str(group.number)]
    }


def _groups(
    senses: Senses,
    members: Mapping[str, Labels],
    names: Mapping[str, str],
    edits: Sequence[Edit],
) -> tuple[EditedGroup, ...]:
    found = {str(group.number): group for group in senses.groups}
    made = [edit.new.id for edit in edits if isinstance(edit, SplitEdit)]
    colours = {id_: number for number, id_ in enumerate(dict.fromkeys([*found, *made]))}
    vectors, total = senses.grouping.vectors, len(senses.uses)
    groups = []
    for id_ in sorted(members, key=colours.__getitem__):
        uses, there = members[id_], found.get(id_)
        middle = group_means(vectors[uses], np.zeros(len(uses), np.int64), 1)[0]
        order = np.argsort(-(vectors[uses] @ middle), kind="stable")
        is_as_found = there is not None and bool(
            there.size == len(uses) and (senses.grouping.labels[uses] == there.number - 1).all()
        )
        share = len(uses) / total
        groups.append(
            EditedGroup(id_, names[id_], colours[id_], uses[order], share, there, is_as_found)
        )
    return tuple(groups)
