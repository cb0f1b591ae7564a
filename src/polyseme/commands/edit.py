r"""Edit groups of uses by hand: rename, merge, split, move, label, undo.

Each edit is added to a file, --edits, and nothing in it is ever erased. `polyseme senses --edits`
shows the groups as you left them, also when the corpus has grown since, or with another model or
granularity: a group is recognized by the uses it had. Edits that fit no group are reported.

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

from polyseme.commands.senses import group_by_meaning, groups_table
from polyseme.config import Settings
from polyseme.errors import ConfigError
from polyseme.meanings.settings import FindConfig, GroupingConfig
from polyseme.printable import PrintableText
from polyseme.progress import Progress
from polyseme.tables import on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyseme.meanings.annotation.edits import Edit
    from polyseme.meanings.groups.named_groups import Senses


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
    json_: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class EditResult:
    """The groups after the edit, and its number in the file."""

    senses: "Senses"
    number: int
    config: EditConfig

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"edit": self.number, **self.senses.to_json()}


def run(config: EditConfig, progress: Progress | None = None) -> EditResult:
    """Find the groups, do earlier edits again, add this one."""
    from polyseme.meanings.annotation.edit_log import append_next, read_edits

    _check(config)
    read_edits(config.edits)  # a file that is damaged is told before any work is done
    found = group_by_meaning(config.find, config.grouping, progress)
    after = found

    def make_edit(before: "tuple[Edit, ...]") -> "Edit":
        nonlocal after
        edit = _edit(config, found.edited(before), before)
        after = found.edited([*before, edit])
        if refused := [problem for problem in after.problems if problem.edit == len(before) + 1]:
            raise ConfigError(refused[0].message)
        return edit

    number = append_next(config.edits, make_edit)
    return EditResult(after, number, config)


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
        raise ConfigError(f"Ask for one edit: {', '.join(asked)}.")
    if (config.rename or config.split) and not config.name:
        raise ConfigError("The group needs a name: add --name.")
    if len(config.merge) == 1:
        raise ConfigError("Name two groups or more to be merged: --merge 1,3.")


def _edit(config: EditConfig, senses: "Senses", before: "Sequence[Edit]") -> "Edit":
    from polyseme.meanings.annotation.edited_groups import choose_uses, group_ref, new_group_id
    from polyseme.meanings.annotation.edits import (
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
        return RenameEdit(group=group_ref(senses, config.rename), name=config.name or "")
    if config.merge:
        return MergeEdit(groups=tuple(group_ref(senses, id_) for id_ in config.merge))
    if config.split is not None:
        new = GroupRef(id=new_group_id(senses, before), name=config.name or "")
        uses = choose_uses(senses, *chosen, within=config.split)
        return SplitEdit(group=group_ref(senses, config.split), uses=uses, new=new)
    if config.move_to is not None:
        to = group_ref(senses, config.move_to)
        return MoveEdit(uses=choose_uses(senses, *chosen), to=to)
    if config.label is not None:
        return LabelEdit(uses=choose_uses(senses, *chosen), label=config.label)
    if (undo := undo_last(before)) is None:
        raise ConfigError(f"{config.edits} has no edit to undo.")
    return undo


def show(result: EditResult) -> RenderableType:
    """The groups as they are now."""
    notes = [PrintableText(note, "yellow") for note in result.senses.notes]
    said = f"Edit {result.number} was added to {result.config.edits}."
    return Group(groups_table(result.senses), *notes, on_one_line(said))
