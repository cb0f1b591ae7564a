r"""Edit a word's groups by hand: rename, merge, split, move, label, undo.

Each edit is appended to the file --edits; nothing in it is ever erased. The groups are those that
`polyseme senses` found and kept with the same settings; if there are none, they are computed.
`polyseme senses --edits` shows the groups with your edits, even if the corpus has grown or you use
another model or granularity: a group is recognized by the uses it had. Edits that fit no group are
reported.

Examples:

  polyseme edit bank --in corpus/en --model models/en-mini --edits bank.jsonl \
      --rename 2 --name river

  polyseme edit bank --in corpus/en --model models/en-mini --edits bank.jsonl --merge 1,3

  polyseme edit bank --in corpus/en --model models/en-mini --edits bank.jsonl \
      --split 1 --containing "blood|donor" --name "blood bank"

  polyseme edit bank --in corpus/en --model models/en-mini --edits bank.jsonl --undo
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands.senses import editable_groups
from polyseme.config import Settings
from polyseme.display import PrintableText, describe_groups, numbers, on_one_line, titled
from polyseme.errors import ConfigError
from polyseme.meanings.settings import FindConfig, GroupingConfig
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polyseme.meanings.edits import Edit, UseGroup
    from polyseme.meanings.groups.senses import EditableGroups


class EditConfig(Settings):
    """Which groups, and what to do to them."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    grouping: GroupingConfig
    """How to group."""
    edits: Path
    """The file of edits (.jsonl), to which this one is added."""
    rename: str | None = None
    """Give this group another name: --name."""
    merge: tuple[str, ...] = ()
    """Make one group of these; the first keeps its name."""
    split: str | None = None
    """Make a new group, called --name, of some uses of this one."""
    move_to: str | None = None
    """Put uses into this group."""
    label: str | None = None
    """Give uses this label of your own, from which `polyseme label` learns."""
    undo: bool = False
    """Undo the last edit that is still in effect."""
    name: str | None = None
    """The new name of a group."""
    uses: tuple[int, ...] = ()
    """Which uses: their numbers, in the column `use` of what `polyseme senses --out` writes."""
    containing: str | None = None
    """Which uses instead: those whose sentence matches this regular expression (RE2)."""


@dataclass(frozen=True)
class EditResult:
    """The groups after the edit, and its number in the file."""

    title: str
    groups: "Mapping[str, UseGroup]"  # the largest first
    notes: tuple[str, ...]
    number: int
    edits: Path

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        groups = [
            {"group": id_, "name": group.name, "uses": len(group.uses)}
            for id_, group in self.groups.items()
        ]
        return {"edit": self.number, "groups": groups, "notes": list(self.notes)}


def run(config: EditConfig, progress: Progress = SILENT) -> EditResult:
    """Apply earlier edits to the groups, and add this one."""
    from polyseme.meanings.edits import append_next, read_edits

    _check(config)
    log = read_edits(config.edits)  # a file that is damaged is told before any work is done
    found = editable_groups(config.find, config.grouping, progress)
    after = found.replay(())

    def make_edit(before: "tuple[Edit, ...]") -> "Edit":
        nonlocal after
        edit = _edit(config, found.edited(before), before)
        after = found.replay([*before, edit])
        if refused := [problem for problem in after.problems if problem.edit == len(before) + 1]:
            raise ConfigError(refused[0].message)
        return edit

    number = append_next(config.edits, make_edit)
    by_size = sorted(after.groups.items(), key=lambda item: (-len(item[1].uses), item[0]))
    notes = tuple(problem.message for problem in after.problems)
    notes += (log.message,) if log.message else ()
    return EditResult(str(found.uses.query), dict(by_size), notes, number, config.edits)


def _check(config: EditConfig) -> None:
    """Refuse none or several edits at once, before any work is done."""
    asked = {
        "--rename": config.rename is not None,
        "--merge": bool(config.merge),
        "--split": config.split is not None,
        "--move-to": config.move_to is not None,
        "--label": config.label is not None,
        "--undo": config.undo,
    }
    if sum(asked.values()) != 1:
        raise ConfigError(f"Choose one edit: {', '.join(asked)}.")
    if (config.rename or config.split) and not config.name:
        raise ConfigError("The group needs a name: add --name.")
    if len(config.merge) == 1:
        raise ConfigError("Name two groups or more to be merged: --merge 1,3.")


def _edit(config: EditConfig, groups: "EditableGroups", before: "Sequence[Edit]") -> "Edit":
    from polyseme.meanings.edits import (
        GroupRef,
        LabelEdit,
        MergeEdit,
        MoveEdit,
        RenameEdit,
        SplitEdit,
        undo_last,
    )

    chosen = config.uses, config.containing
    if config.rename is not None:
        return RenameEdit(group=groups.ref(config.rename), name=config.name or "")
    if config.merge:
        return MergeEdit(groups=tuple(map(groups.ref, config.merge)))
    if config.split is not None:
        new = GroupRef(id=groups.new_id(before), name=config.name or "")
        uses = groups.choose(*chosen, within=config.split)
        return SplitEdit(group=groups.ref(config.split), uses=uses, new=new)
    if config.move_to is not None:
        return MoveEdit(uses=groups.choose(*chosen), to=groups.ref(config.move_to))
    if config.label is not None:
        return LabelEdit(uses=groups.choose(*chosen), label=config.label)
    if (undo := undo_last(before)) is None:
        raise ConfigError(f"{config.edits} has no edit to undo.")
    return undo


def show(result: EditResult) -> RenderableType:
    """The groups as they are now."""
    table = Table(*numbers("", "uses", "share"))
    table.add_column("name", overflow="fold")
    total = sum(len(group.uses) for group in result.groups.values())
    for id_, (name, uses) in result.groups.items():
        figures = (PrintableText(id_), f"{len(uses):,}", f"{len(uses) / total:.0%}")
        table.add_row(*figures, PrintableText(name))
    title = f"{result.title}: {describe_groups(total, len(result.groups))}"
    notes = [PrintableText(note, "yellow") for note in result.notes]
    said = f"Edit {result.number} was added to {result.edits}."
    return Group(titled(title, table), *notes, on_one_line(said))
