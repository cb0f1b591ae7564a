"""What a user did to groups of uses, entry by entry, so that it can be done again anywhere.

    in    groups as they were found, and edits: rename, merge, split, move, label, undo
    out   groups as the user left them, labels of uses, and what could not be done again

Nothing is ever erased: an undo is an entry, too, and undoing an undo brings the edit back. Each
entry names what it was applied to, a use by its sentence and the word's index in it, a group by its
id and the name it had. So edits fit groups of a corpus that has grown or shrunk since; and where an
id now stands for another group, that is told, and the edit not applied to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field, field_validator

from polyseme.config import Settings
from polyseme.display import sentence
from polyseme.errors import InputError

Text: TypeAlias = Annotated[str, Field(strict=True, min_length=1, max_length=1000)]
_WholeNumber: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=2**31)]


class UseId(NamedTuple):
    """One use of a word in a corpus."""

    sentence_id: Annotated[str, Field(strict=True, max_length=1 << 16)]
    word_index: _WholeNumber


Uses: TypeAlias = Annotated[tuple[UseId, ...], Field(min_length=1)]


class GroupRef(Settings):
    """A group as an edit names it."""

    id: Text
    """Stays the same when the group is renamed."""
    name: Annotated[str, Field(strict=True, max_length=1000)]
    """Its name at that time."""


class RenameEdit(Settings):
    """Give a group another name."""

    kind: Literal["rename"] = "rename"
    group: GroupRef
    """As it was."""
    name: Text
    """What it is called now."""


class MergeEdit(Settings):
    """Make one group of several."""

    kind: Literal["merge"] = "merge"
    groups: Annotated[tuple[GroupRef, ...], Field(min_length=2)]
    """The first stays, with its id and its name, and takes in the uses of the others."""

    @field_validator("groups")
    @classmethod
    def _are_different(cls, groups: tuple[GroupRef, ...]) -> tuple[GroupRef, ...]:
        if len({group.id for group in groups}) < len(groups):
            raise ValueError("a group cannot be merged with itself")
        return groups


class SplitEdit(Settings):
    """Make a new group of some of a group's uses."""

    kind: Literal["split"] = "split"
    group: GroupRef
    """The one they are taken from."""
    uses: Uses
    """What the new group has."""
    new: GroupRef
    """Its id, which no other group has, and its name."""


class MoveEdit(Settings):
    """Put uses into another group. A group that has none left is gone."""

    kind: Literal["move"] = "move"
    uses: Uses
    """From whichever groups they are in."""
    to: GroupRef
    """The group they are in now."""


class LabelEdit(Settings):
    """Label uses by hand; an earlier label is replaced."""

    kind: Literal["label"] = "label"
    uses: Uses
    """Those that get it."""
    label: Text
    """What the user calls this sense."""


class UndoEdit(Settings):
    """Take an earlier entry back, as if it had never been."""

    kind: Literal["undo"] = "undo"
    edit: Annotated[int, Field(strict=True, ge=1)]
    """Its number, counted from 1."""


Edit: TypeAlias = Annotated[
    RenameEdit | MergeEdit | SplitEdit | MoveEdit | LabelEdit | UndoEdit,
    Field(discriminator="kind"),
]


class UseGroup(NamedTuple):
    """A group of uses."""

    name: str
    uses: frozenset[UseId]


class ReplayProblem(NamedTuple):
    """What of an edit could not be done again."""

    edit: int
    """Its number, counted from 1."""
    message: str
    is_applied: bool
    """Whether the rest of it was done."""
    uses: tuple[UseId, ...] = ()
    """The uses that are not where they were."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Groups and labels after all edits."""

    groups: dict[str, UseGroup]
    """By id."""
    labels: dict[UseId, str]
    problems: tuple[ReplayProblem, ...]


def replay(groups: Mapping[str, UseGroup], edits: Sequence[Edit]) -> Replayed:
    """Do all edits again, in order, that no later one takes back. `groups` stays as it is."""
    state = _State({id_: (group.name, set(group.uses)) for id_, group in groups.items()})
    stands = _standing(edits)
    for number, edit in enumerate(edits, start=1):
        state.number = number
        if isinstance(edit, UndoEdit):
            if edit.edit >= number:
                state.refuse(f"there is no entry {edit.edit} before it to undo")
        elif stands[number - 1]:
            state.apply(edit)
    found = {id_: UseGroup(name, frozenset(uses)) for id_, (name, uses) in state.groups.items()}
    return Replayed(found, state.labels, tuple(state.problems))


def undo_last(edits: Sequence[Edit]) -> UndoEdit | None:
    """The entry that takes back the last edit that still stands; None, if there is none."""
    stands = _standing(edits)
    for number in range(len(edits), 0, -1):
        if stands[number - 1] and not isinstance(edits[number - 1], UndoEdit):
            return UndoEdit(edit=number)
    return None


def touched(edit: Edit, edits: Sequence[Edit]) -> set[object]:
    """What an edit changes: ids of groups, places of uses, labels of uses.

    Edits that touch nothing in common can be made in any order. `edits`: for what an undo undoes.
    """
    match edit:
        case RenameEdit():
            return {edit.group.id}
        case MergeEdit():
            return {group.id for group in edit.groups}
        case SplitEdit():
            return {edit.group.id, edit.new.id, *edit.uses}
        case MoveEdit():
            return {edit.to.id, *edit.uses}
        case LabelEdit():
            return {("label", use) for use in edit.uses}
        case UndoEdit():
            return touched(edits[edit.edit - 1], edits) if edit.edit <= len(edits) else set()


def _standing(edits: Sequence[Edit]) -> list[bool]:
    """Which entries no later one takes back. From the end: an undo that is undone does nothing."""
    stands = [True] * len(edits)
    for number in range(len(edits), 0, -1):
        edit = edits[number - 1]
        if isinstance(edit, UndoEdit) and stands[number - 1] and edit.edit < number:
            stands[edit.edit - 1] = False
    return stands


class _CannotApplyError(Exception):
    """An edit that does not fit the groups as they are."""


@dataclass
class _State:
    """Groups while edits are applied to them."""

    groups: dict[str, tuple[str, set[UseId]]]
    labels: dict[UseId, str] = field(default_factory=dict)
    problems: list[ReplayProblem] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.home = {use: id_ for id_, (_, uses) in self.groups.items() for use in uses}
        if len(self.home) < sum(len(uses) for _, uses in self.groups.values()):
            raise InputError("A use is in two groups. Edits are for groups that share none.")

    def apply(self, edit: RenameEdit | MergeEdit | SplitEdit | MoveEdit | LabelEdit) -> None:
        """One edit, or a problem that tells why not."""
        try:
            match edit:
                case RenameEdit():
                    self.groups[edit.group.id] = (edit.name, self._uses_of(edit.group))
                case MergeEdit():
                    self._merge(edit)
                case SplitEdit():
                    self._split(edit)
                case MoveEdit():
                    self._uses_of(edit.to)
                    self._put(self._found(edit.uses, self.home), edit.to.id)
                case LabelEdit():
                    self.labels |= dict.fromkeys(self._found(edit.uses, self.home), edit.label)
        except _CannotApplyError as error:
            self.refuse(str(error))

    def refuse(self, reason: str) -> None:
        """Report an entry that is not applied."""
        message = f"Edit {self.number} was not applied: {reason}."
        self.problems.append(ReplayProblem(self.number, message, is_applied=False))

    def _merge(self, edit: MergeEdit) -> None:
        first, *others = [self._uses_of(group) for group in edit.groups]
        for group, uses in zip(edit.groups[1:], others, strict=True):
            first |= uses
            self.home |= dict.fromkeys(uses, edit.groups[0].id)
            del self.groups[group.id]

    def _split(self, edit: SplitEdit) -> None:
        uses = self._uses_of(edit.group)
        if edit.new.id in self.groups:
            raise _CannotApplyError(f"there is a group {edit.new.id!r} already")
        chosen = self._found(edit.uses, uses)
        if not chosen:
            return
        if len(chosen) == len(uses):
            raise _CannotApplyError(f"nothing would be left of {edit.group.name!r}")
        self.groups[edit.new.id] = (edit.new.name, set())
        self._put(chosen, edit.new.id)

    def _put(self, uses: Sequence[UseId], to: str) -> None:
        left = {self.home[use] for use in uses} - {to}
        for use in uses:
            self.groups[self.home[use]][1].discard(use)
            self.groups[to][1].add(use)
            self.home[use] = to
        for id_ in left:
            if not self.groups[id_][1]:
                del self.groups[id_]

    def _uses_of(self, group: GroupRef) -> set[UseId]:
        if group.id not in self.groups:
            raise _CannotApplyError(f"there is no group {group.id!r} ({_short(group.name)}) now")
        name, uses = self.groups[group.id]
        if name != group.name:
            raise _CannotApplyError(
                f"group {group.id!r} is {_short(name)} now, and was {_short(group.name)} then"
            )
        return uses

    def _found(self, uses: Sequence[UseId], among: Collection[UseId]) -> list[UseId]:
        """Those that are where the edit found them; the others are reported."""
        asked = list(dict.fromkeys(uses))
        missing = tuple(use for use in asked if use not in among)
        if not missing:
            return asked
        is_applied = len(missing) < len(asked)
        done = "was applied to the others" if is_applied else "was not applied"
        message = (
            f"Edit {self.number} {done}: {len(missing):,} of {len(asked):,} uses are no longer "
            "where they were."
        )
        self.problems.append(ReplayProblem(self.number, message, is_applied, missing))
        return [use for use in asked if use in among]


def _short(name: str) -> str:
    return repr(sentence(name.split()))
