"""Judge: what a user does to groups, one entry of the log for each.

in   a form: what to do, to which lines or which group
out  an edit in the log, and the page again
"""

from collections.abc import Sequence
from urllib.parse import parse_qs

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from polyseme.errors import InputError
from polyseme.explorer.desk import Desk
from polyseme.explorer.explored_word import SEED
from polyseme.explorer.reading import Reading, check_number
from polyseme.explorer.view import MAX_TEXT, FormValues, View
from polyseme.meanings.annotation.edited_groups import group_of, group_ref, new_group_id
from polyseme.meanings.annotation.edits import (
    Edit,
    GroupRef,
    LabelEdit,
    MergeEdit,
    MoveEdit,
    RenameEdit,
    SplitEdit,
    UseId,
    undo_last,
)
from polyseme.meanings.features.use_features import Labels
from polyseme.meanings.groups.grouping import group_uses
from polyseme.meanings.groups.named_groups import NamedGroup, Senses

_MAX_NAME = 200
_MOST_LINES = 10_000


def judge(request: Request, form: FormValues) -> Response:
    """Do what the form asks, write it down, and show the page again."""
    desk = Desk.of(request)
    view = View.read(FormValues(parse_qs(form.get("view"), max_num_fields=1_000)))
    request.state.view = view  # an error leads back to it
    if form.get("action") == "undo":
        if undo := undo_last(desk.workspace.edits(view).edits):
            desk.workspace.add_edit(view, undo)
    else:
        reading, edited = desk.judged(view)
        new_id = new_group_id(edited, desk.workspace.edits(view).edits)
        desk.workspace.add_edit(view, _edit(form, reading, edited, new_id))
    # A group may be gone now, and numbers of pages with it.
    ids = {group.id for group in desk.judged(view)[1].groups}
    stays = view.group if view.group in ids or view.show else ""
    return RedirectResponse(view.but(group=stays, uses=()).address("/word"), 303)


def _edit(form: FormValues, reading: Reading, senses: Senses, new_id: str) -> Edit:
    match form.get("action"):
        case "rename":
            group = group_ref(senses, form.get("group"))
            return RenameEdit(group=group, name=_name(form, "name"))
        case "merge":
            both = (group_ref(senses, form.get("into")), group_ref(senses, form.get("group")))
            if both[0].id == both[1].id:
                raise InputError("A group cannot be merged with itself. Choose another.")
            return MergeEdit(groups=both)
        case "halve":
            whole = group_of(senses, form.get("group"))
            new = GroupRef(id=new_id, name=f"{whole.name[:_MAX_NAME]} (2)")
            return _split(reading, whole, _smaller_half(senses, whole), new)
        case "split":
            chosen = _chosen(form, reading)
            whole = _one_group(senses, chosen)
            return _split(reading, whole, chosen, GroupRef(id=new_id, name=_name(form, "name")))
        case "move":
            target = group_ref(senses, form.get("to"))
            return MoveEdit(uses=_ids(reading, _chosen(form, reading)), to=target)
        case "label":
            label = _name(form, "label")
            return LabelEdit(uses=_ids(reading, _chosen(form, reading)), label=label)
        case other:
            raise InputError(f"{other[:40]!r} is not an edit of groups.")


def _one_group(senses: Senses, chosen: Labels) -> NamedGroup:
    labels = np.unique(senses.grouping.labels[chosen])
    if len(labels) > 1:
        raise InputError(
            "The ticked lines are of several groups. A new group is split off one: tick lines of "
            "one group, or move them."
        )
    return senses.groups[int(labels[0])]


def _split(reading: Reading, group: NamedGroup, chosen: Labels, new: GroupRef) -> SplitEdit:
    if len(chosen) == group.size:
        raise InputError("All lines of the group are ticked: nothing would be left. Rename it.")
    whole = GroupRef(id=group.id, name=group.name)
    return SplitEdit(group=whole, uses=_ids(reading, chosen), new=new)


def _smaller_half(senses: Senses, group: NamedGroup) -> Labels:
    """Its uses grouped by themselves into two; those of the smaller one."""
    members = np.flatnonzero(senses.grouping.labels == group.number - 1)
    halves = group_uses(senses.features.select(members), num_groups=2, seed=SEED)
    smaller: Labels = members[halves.labels == 1]
    return smaller


def _name(form: FormValues, key: str) -> str:
    name = form.get(key).strip()
    if not name or len(name) > min(_MAX_NAME, MAX_TEXT):
        raise InputError(f"A name has one to {_MAX_NAME} characters; this one has {len(name)}.")
    return name


def _chosen(form: FormValues, reading: Reading) -> Labels:
    """The ticked lines; or, if none is, those that were chosen on the map."""
    ticked = form.getlist("use")[:_MOST_LINES]
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in ticked):
        raise InputError("A ticked line does not exist. Reload the page.")
    numbers: Sequence[int] = [int(text) for text in ticked] or reading.view.uses
    if not numbers:
        raise InputError("No line is ticked. Tick lines, or select some on the map.")
    check_number(max(numbers), len(reading.word.uses))
    return np.array(sorted(set(numbers)), np.int64)


def _ids(reading: Reading, numbers: Labels) -> tuple[UseId, ...]:
    return tuple(reading.word.ids[int(number)] for number in numbers)
