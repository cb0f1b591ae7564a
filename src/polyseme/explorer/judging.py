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
from polyseme.meanings.edited import EditedGroup, EditedSenses
from polyseme.meanings.edits import (
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
from polyseme.meanings.groups import Labels, group_uses

_MAX_NAME = 200
_MOST_LINES = 10_000


def judge(request: Request, form: FormValues) -> Response:
    """Do what the form asks, write it down, and show the page again."""
    desk = Desk.of(request)
    view = View.read(FormValues(parse_qs(form.get("view"), max_num_fields=1_000)))
    if form.get("action") == "undo":
        if undo := undo_last(desk.workspace.edits(view).edits):
            desk.workspace.add_edit(view, undo)
    else:
        reading, edited = desk.judged(view)
        number = len(desk.workspace.edits(view).edits) + 1
        desk.workspace.add_edit(view, _edit(form, reading, edited, number))
    # A group may be gone now, and numbers of pages with it.
    ids = {group.id for group in desk.judged(view)[1].groups}
    stays = view.group if view.group in ids or view.show else ""
    return RedirectResponse(view.but(group=stays, uses=()).address("/word"), 303)


def _edit(form: FormValues, reading: Reading, edited: EditedSenses, number: int) -> Edit:
    match form.get("action"):
        case "rename":
            return RenameEdit(group=_group(edited, form.get("group")).ref, name=_name(form, "name"))
        case "merge":
            both = (_group(edited, form.get("into")), _group(edited, form.get("group")))
            if both[0].id == both[1].id:
                raise InputError("A group cannot be merged with itself. Choose another.")
            return MergeEdit(groups=tuple(group.ref for group in both))
        case "halve":
            group = _group(edited, form.get("group"))
            half = _smaller_half(edited, group)
            return _split(group, _ids(reading, half), number, f"{group.name[:_MAX_NAME]} (2)")
        case "split":
            chosen = _chosen(form, reading)
            group = edited.group_of[int(chosen[0])]
            if any(edited.group_of[int(each)].id != group.id for each in chosen):
                raise InputError(
                    "The ticked lines are of several groups. A new group is split off one: tick "
                    "lines of one group, or move them."
                )
            return _split(group, _ids(reading, chosen), number, _name(form, "name"))
        case "move":
            target = _group(edited, form.get("to"))
            return MoveEdit(uses=_ids(reading, _chosen(form, reading)), to=target.ref)
        case "label":
            label = _name(form, "label")
            return LabelEdit(uses=_ids(reading, _chosen(form, reading)), label=label)
        case other:
            raise InputError(f"{other[:40]!r} is nothing that can be done to groups.")


def _split(group: EditedGroup, uses: tuple[UseId, ...], number: int, name: str) -> SplitEdit:
    if len(uses) == len(group.uses):
        raise InputError("All lines of the group are ticked: nothing would be left. Rename it.")
    return SplitEdit(group=group.ref, uses=uses, new=GroupRef(id=f"new{number}", name=name))


def _smaller_half(edited: EditedSenses, group: EditedGroup) -> Labels:
    """Its uses grouped by themselves into two; those of the smaller one."""
    features = edited.senses.features.select(group.uses)
    is_smaller = group_uses(features, num_groups=2, seed=SEED).labels == 1
    half: Labels = group.uses[is_smaller]
    return half


def _group(edited: EditedSenses, id_: str) -> EditedGroup:
    found = edited.group(id_)
    if found is None:
        raise InputError(f"There is no group {id_[:40]!r} now. Load the page again.")
    return found


def _name(form: FormValues, key: str) -> str:
    name = form.get(key).strip()
    if not name or len(name) > min(_MAX_NAME, MAX_TEXT):
        raise InputError(f"A name has one to {_MAX_NAME} characters; this one has {len(name)}.")
    return name


def _chosen(form: FormValues, reading: Reading) -> Labels:
    """The ticked lines; or, if none is, those that were chosen on the map."""
    ticked = form.getlist("use")[:_MOST_LINES]
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in ticked):
        raise InputError("A line is ticked that is none. Load the page again.")
    numbers: Sequence[int] = [int(text) for text in ticked] or reading.view.uses
    if not numbers:
        raise InputError("No line is ticked. Tick lines, or choose some on the map.")
    check_number(max(numbers), len(reading.word.uses))
    return np.array(sorted(set(numbers)), np.int64)


def _ids(reading: Reading, numbers: Labels) -> tuple[UseId, ...]:
    return tuple(reading.word.ids[int(number)] for number in numbers)
