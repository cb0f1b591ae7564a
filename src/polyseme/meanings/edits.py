"""What a user did to groups of uses, entry by entry, so that it can be done again anywhere.

    in    groups as they were found, and edits: rename, merge, split, move, label, undo
    out   groups as the user left them, labels of uses, and what could not be done again

Nothing is ever erased: an undo is an entry, too, and undoing an undo brings the edit back. Each
entry names what it was applied to, a use by its sentence and the word's index in it, a group by the
uses it had. A group is made again each time, with another number and other words, when the corpus
has grown, or with another model or granularity; so an edit is of the group that has the largest
part of those uses, if that is a third of them or more, and if most of what is in that group, of
what was there then, belonged to it. What fits no group is told, and stays in the log.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from polyseme.config import Settings
from polyseme.display import printable, sentence
from polyseme.errors import InputError
from polyseme.limits import JSON_BYTES, parse_json, read_bytes
from polyseme.storage.files import disk_faults_explained, hold_file, scratch_for

Text: TypeAlias = Annotated[str, Field(strict=True, min_length=1, max_length=1000)]
_WholeNumber: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=2**31)]
_Fingerprint: TypeAlias = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{12}$")]

NUM_KEPT = 64
"""How many fingerprints of a group's uses an edit keeps, and of other groups' uses."""
_LEAST_SHARE = 1 / 3
_FEWEST = 3  # uses that are found again, or all: fewer could be there by chance


class UseId(NamedTuple):
    """One use of a word in a corpus."""

    sentence_id: Annotated[str, Field(strict=True, max_length=1 << 16)]
    word_index: _WholeNumber


Uses: TypeAlias = Annotated[tuple[UseId, ...], Field(min_length=1)]


class Members(Settings):
    """Which uses a group had: fingerprints of a sample of them, and of uses in other groups."""

    inside: Annotated[tuple[_Fingerprint, ...], Field(min_length=1, max_length=NUM_KEPT)]
    """Of its own uses."""
    outside: Annotated[tuple[_Fingerprint, ...], Field(max_length=NUM_KEPT)] = ()
    """Of uses in other groups."""
    num_inside: _WholeNumber
    """How many uses it had."""
    num_outside: _WholeNumber = 0
    """How many the other groups had."""


class GroupRef(Settings):
    """A group as an edit names it."""

    id: Text
    """Stays the same when the group is renamed."""
    name: Annotated[str, Field(strict=True, max_length=1000)]
    """Its name at that time."""
    members: Members | None = None
    """What it is recognized by. Without it, as in older logs, id and name have to be the same."""


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

    edit: int  # its number, counted from 1
    message: str
    is_applied: bool  # whether the rest of it was done
    uses: tuple[UseId, ...] = ()  # the uses that are not where they were


@dataclass(frozen=True, slots=True)
class Replayed:
    """Groups and labels after all edits."""

    groups: dict[str, UseGroup]  # by id
    labels: dict[UseId, str]
    problems: tuple[ReplayProblem, ...]


def replay(
    groups: Mapping[str, UseGroup],
    edits: Sequence[Edit],
    fingerprints: Mapping[UseId, str] | None = None,
) -> Replayed:
    """Do all edits again, in order, that no later one takes back. `groups` stays as it is.

    `fingerprints`: of each use, by which groups are recognized.
    """
    state = _State(
        {id_: (group.name, set(group.uses)) for id_, group in groups.items()}, fingerprints or {}
    )
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
    """What an edit changes: groups, places of uses, labels of uses.

    Edits that touch nothing in common can be made in any order. `edits`: for what an undo undoes.
    """
    match edit:
        case RenameEdit():
            return _known_by(edit.group)
        case MergeEdit():
            return set().union(*map(_known_by, edit.groups))
        case SplitEdit():
            return {*_known_by(edit.group), *edit.uses}
        case MoveEdit():
            return {*_known_by(edit.to), *edit.uses}
        case LabelEdit():
            return {("label", use) for use in edit.uses}
        case UndoEdit():
            return touched(edits[edit.edit - 1], edits) if edit.edit <= len(edits) else set()


def _known_by(group: GroupRef) -> set[object]:
    """Its uses: in a grouping of another granularity, its id is that of another group."""
    return set(group.members.inside) if group.members else {group.id}


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
    fingerprints: Mapping[UseId, str]
    labels: dict[UseId, str] = field(default_factory=dict)
    problems: list[ReplayProblem] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.home = {use: id_ for id_, (_, uses) in self.groups.items() for use in uses}
        if len(self.home) < sum(len(uses) for _, uses in self.groups.values()):
            raise InputError("A use is in two groups. Edits are for groups that share none.")
        self.alike: dict[str, list[UseId]] = defaultdict(list)
        for use, fingerprint in self.fingerprints.items():
            if use in self.home:
                self.alike[fingerprint].append(use)

    def apply(self, edit: RenameEdit | MergeEdit | SplitEdit | MoveEdit | LabelEdit) -> None:
        """One edit, or a problem that tells why not."""
        try:
            match edit:
                case RenameEdit():
                    id_ = self._find(edit.group)
                    self.groups[id_] = (edit.name, self.groups[id_][1])
                case MergeEdit():
                    self._merge(edit)
                case SplitEdit():
                    self._split(edit)
                case MoveEdit():
                    to = self._find(edit.to)
                    self._put(self._found(edit.uses, self.home), to)
                case LabelEdit():
                    self.labels |= dict.fromkeys(self._found(edit.uses, self.home), edit.label)
        except _CannotApplyError as error:
            self.refuse(str(error))

    def refuse(self, reason: str) -> None:
        """Report an entry that is not applied."""
        message = f"Edit {self.number} was not applied: {reason}."
        self.problems.append(ReplayProblem(self.number, message, is_applied=False))

    def _merge(self, edit: MergeEdit) -> None:
        if self._are_together(edit.groups):
            return
        first, *others = dict.fromkeys(self._find(group) for group in edit.groups)
        for id_ in others:
            uses = self.groups.pop(id_)[1]
            self.groups[first][1].update(uses)
            self.home |= dict.fromkeys(uses, first)

    def _split(self, edit: SplitEdit) -> None:
        members, new = edit.group.members, edit.new.id
        # Uses that a user put together are together, whichever groups they come from now.
        among = self.home if members else self.groups[self._find(edit.group)][1]
        if new in self.groups:
            if members is None:
                raise _CannotApplyError(f"there is a group {new!r} already")
            # Of a grouping with more groups. Later edits find the new group by its uses.
            new = str(1 + max(int(id_) for id_ in self.groups if id_.isdecimal()))
        chosen = self._found(edit.uses, among)
        if not chosen:
            return
        if len(chosen) == (members.num_inside if members else len(among)):
            raise _CannotApplyError(f"nothing would be left of {_short(edit.group.name)}")
        self.groups[new] = (edit.new.name, set())
        self._put(chosen, new)

    def _put(self, uses: Sequence[UseId], to: str) -> None:
        left = {self.home[use] for use in uses} - {to}
        for use in uses:
            self.groups[self.home[use]][1].discard(use)
            self.groups[to][1].add(use)
            self.home[use] = to
        for id_ in left:
            if not self.groups[id_][1]:
                del self.groups[id_]

    def _find(self, group: GroupRef) -> str:
        """The id of the group that an edit means."""
        if (members := group.members) is None:
            return self._find_by_name(group)
        inside = self._where(members.inside)
        if inside.total() < min(_FEWEST, len(members.inside)):
            raise _CannotApplyError(
                f"of the uses that {_short(group.name)} had, too few are here to recognize it by"
            )
        id_, most = max(inside.items(), key=lambda item: (item[1], item[0] == group.id, item[0]))
        if most < _LEAST_SHARE * inside.total():
            raise _CannotApplyError(
                f"the uses that {_short(group.name)} had are scattered over {len(inside)} groups"
            )
        outside = self._where(members.outside)
        num_own = members.num_inside * most / inside.total()
        num_others = members.num_outside * outside[id_] / max(1, outside.total())
        if num_own <= num_others:
            name = _short(self.groups[id_][0])
            raise _CannotApplyError(
                f"the uses that {_short(group.name)} had are the smaller part of group {name} now"
            )
        return id_

    def _find_by_name(self, group: GroupRef) -> str:
        if group.id not in self.groups:
            raise _CannotApplyError(f"there is no group {group.id!r} ({_short(group.name)}) now")
        name = self.groups[group.id][0]
        if name != group.name:
            raise _CannotApplyError(
                f"group {group.id!r} is {_short(name)} now, and was {_short(group.name)} then"
            )
        return group.id

    def _are_together(self, groups: Sequence[GroupRef]) -> bool:
        """Whether one group has more than half of each already, as a coarser grouping may have."""
        found = [self._where(group.members.inside) for group in groups if group.members]
        main = {id_ for where in found for id_, n in where.items() if n > where.total() / 2}
        return len(main) == 1 and len(found) == len(groups) and all(main & set(w) for w in found)

    def _where(self, fingerprints: Sequence[str]) -> Counter[str]:
        """How many of these uses are in which group. Repeated sentences count once."""
        homes: Counter[str] = Counter()
        for alike in (self.alike[each] for each in fingerprints if each in self.alike):
            [(id_, _)] = Counter(self.home[use] for use in alike).most_common(1)
            homes[id_] += 1
        return homes

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


NAME = "edits.jsonl"
_WAIT = 30  # seconds that an edit waits for others to be written
_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


@dataclass(frozen=True, slots=True)
class EditLog:
    """What a file of edits holds."""

    edits: tuple[Edit, ...]
    torn: bytes = b""  # what was being written when a process was killed; no part of `edits`

    @property
    def message(self) -> str:
        """What a user should be told of it; mostly nothing."""
        if not self.torn:
            return ""
        begin = printable(self.torn[:60].decode("utf-8", errors="replace"))
        return (
            f"Edit {len(self.edits) + 1:,} was cut short while being written and is skipped: "
            f"{begin}… Make it again."
        )


def read_edits(path: Path) -> EditLog:
    """All edits of a file; none, if there is no such file. One that is damaged is refused."""
    try:
        content = read_bytes(path, JSON_BYTES)
    except FileNotFoundError:
        return EditLog(())
    except (OSError, ValueError) as error:
        raise InputError(f"The edits in {path} cannot be read: {error}.") from error
    *lines, torn = content.split(b"\n")
    edits = tuple(_parse(line, path, number) for number, line in enumerate(lines, start=1))
    return EditLog(edits, torn)


def append_edit(path: Path, edit: Edit) -> int:
    """Add an edit and return its number, once it is on the disk: whole, or not at all."""
    return append_next(path, lambda _: edit)


def append_next(path: Path, make_edit: Callable[[tuple[Edit, ...]], Edit]) -> int:
    """The same, of an edit that follows from all that there are: nobody adds another meanwhile."""
    with disk_faults_explained(path.parent), hold_file(path, wait=_WAIT):
        log = read_edits(path)
        line = _EDIT.dump_json(make_edit(log.edits), exclude_none=True) + b"\n"
        number = len(log.edits) + 1
        content = read_bytes(path, JSON_BYTES) if path.exists() else b""
        content = content[: len(content) - len(log.torn)] + line
        if len(content) > JSON_BYTES:
            raise InputError(
                f"{path} would have more than {JSON_BYTES:,} bytes, the most that is read. "
                "Save the groups as they are now, and begin a new file of edits."
            )
        if log.torn:
            with scratch_for(path.with_name(f"{path.name}.torn-{number}")) as aside:
                aside.write_bytes(log.torn)
        with scratch_for(path) as scratch:
            scratch.write_bytes(content)
    return number


def _parse(line: bytes, path: Path, number: int) -> Edit:
    try:
        return _EDIT.validate_python(parse_json(line.decode("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}" if where else first["msg"]
    except ValueError as error:
        reason = str(error)
    raise InputError(
        f"Line {number:,} of {path} is not an edit: {printable(reason[:200])}. Restore the file "
        "from a copy, or remove this line if you know what it was."
    )
