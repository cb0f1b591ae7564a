"""Judge: what a user does to groups, one entry of the log for each.

in   a form: what to do, to which lines or which group
out  an edit in the log, and the page again
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from polyseme.explorer.access import MAX_FIELDS
from polyseme.explorer.context import AppContext, PageRequest
from polyseme.explorer.explored_word import SEED
from polyseme.explorer.language import PageError, told_as
from polyseme.explorer.view import MAX_TEXT, FormValues, View
from polyseme.explorer.word_page import WordPage, check_number
from polyseme.meanings.edits import (
    Edit,
    GroupRef,
    LabelEdit,
    MergeEdit,
    MoveEdit,
    RenameEdit,
    SplitEdit,
    UseId,
    touched,
    undo_last,
)
from polyseme.meanings.features.use_features import Labels
from polyseme.meanings.groups.grouping import group_uses
from polyseme.meanings.groups.senses import NamedGroup, Senses

_MAX_NAME = 200
_MOST_LINES = 10_000


def judge(request: Request, form: FormValues) -> Response:
    """Do what the form asks, write it down, and show the page again."""
    view = View.read(FormValues(form.get("view"), most=MAX_FIELDS))
    request.state.view = view  # an error leads back to it
    asked = PageRequest(AppContext.of(request), request, view)
    asked.workspace.add_edit(view, partial(_next_edit, asked, form))
    # A group may be gone now, and numbers of pages with it.
    word_page = asked.word_page()
    stays = view.group if view.group in {block.id for block in word_page.blocks} else ""
    address = view.replace(group=stays, uses=()).address("/word")
    if asked.is_part:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)


def _next_edit(asked: PageRequest, form: FormValues, edits: tuple[Edit, ...]) -> Edit:
    """What a form asks for. It is refused if what it is about was changed after its page was made:
    in another tab, say. What others did elsewhere is no hindrance."""
    text = form.get("state")
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) > len(edits):
        raise PageError("stale_edit")
    state = int(text)
    word_page, edited = asked.judged()
    edit: Edit | None
    if form.get("action") == "undo":
        edit = undo_last(edits[:state])
        if edit is None:
            raise PageError("nothing_to_undo")
    else:
        edit = _edit(form, word_page, edited, edited.editable.new_id(edits))
    since = [touched(each, edits) for each in edits[state:]]
    if not touched(edit, edits).isdisjoint(set().union(*since)):
        raise PageError("stale_edit")
    return edit


def _edit(form: FormValues, word_page: WordPage, senses: Senses, new_id: str) -> Edit:
    match form.get("action"):
        case "rename":
            return RenameEdit(group=_group(form, senses, "group"), name=_name(form, "name"))
        case "merge":
            both = (_group(form, senses, "into"), _group(form, senses, "group"))
            if both[0].id == both[1].id:
                raise PageError("merge_itself")
            return MergeEdit(groups=both)
        case "halve":
            id_ = _group(form, senses, "group").id
            whole = next(group for group in senses.groups if group.id == id_)
            new = GroupRef(id=new_id, name=f"{whole.name[:_MAX_NAME]} (2)")
            return _split(senses, whole, _smaller_half(senses, whole), new)
        case "split":
            chosen = _chosen(form, word_page)
            whole = _one_group(senses, chosen)
            new = GroupRef(id=new_id, name=_name(form, "name"))
            return _split(senses, whole, chosen, new)
        case "move":
            target = _group(form, senses, "to")
            return MoveEdit(uses=_ids(senses, _chosen(form, word_page)), to=target)
        case "label" | "rename_label" | "":  # a button with the name of a sense has no action
            return _label(form, word_page, senses)
        case _:
            raise PageError("no_such_edit")


def _label(form: FormValues, word_page: WordPage, senses: Senses) -> LabelEdit:
    """A label for the chosen lines: one there is, or a new one; or for all that have another."""
    if form.get("action") != "rename_label":
        label = _name(form, "label" if form.get("label") else "new_label")
        return LabelEdit(uses=_ids(senses, _chosen(form, word_page)), label=label)
    old = form.get("group")
    by_hand = sorted(n for n, label in senses.labels_by_hand.items() if label == old)
    if not by_hand:
        raise PageError("no_group", id=old)
    return LabelEdit(uses=_ids(senses, np.array(by_hand, np.int64)), label=_name(form, "name"))


def _group(form: FormValues, senses: Senses, key: str) -> GroupRef:
    with told_as("no_group", id=form.get(key)):
        return senses.editable.ref(form.get(key))


def _one_group(senses: Senses, chosen: Labels) -> NamedGroup:
    labels = np.unique(senses.grouping.labels[chosen])
    if len(labels) > 1:
        raise PageError("several_groups")
    return senses.groups[int(labels[0])]


def _split(senses: Senses, group: NamedGroup, chosen: Labels, new: GroupRef) -> SplitEdit:
    if len(chosen) == group.size:
        raise PageError("whole_group")
    return SplitEdit(group=senses.editable.ref(group.id), uses=_ids(senses, chosen), new=new)


def _smaller_half(senses: Senses, group: NamedGroup) -> Labels:
    """Its uses grouped by themselves into two; those of the smaller one."""
    members = np.flatnonzero(senses.grouping.labels == group.number - 1)
    halves = group_uses(senses.features.select(members), num_groups=2, seed=SEED)
    smaller: Labels = members[halves.labels == 1]
    return smaller


def _name(form: FormValues, key: str) -> str:
    name = form.get(key).strip()
    if not name or len(name) > min(_MAX_NAME, MAX_TEXT):
        raise PageError("bad_name", most=_MAX_NAME, n=len(name))
    return name


def _chosen(form: FormValues, word_page: WordPage) -> Labels:
    """The ticked lines; or, if none is, those that were chosen on the map."""
    ticked = form.getlist("use")[:_MOST_LINES]
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in ticked):
        raise PageError("no_such_line")
    numbers: Sequence[int] = [int(text) for text in ticked] or word_page.view.uses
    if not numbers:
        raise PageError("nothing_ticked")
    check_number(max(numbers), len(word_page.word.uses))
    return np.array(sorted(set(numbers)), np.int64)


def _ids(senses: Senses, numbers: Labels) -> tuple[UseId, ...]:
    return tuple(senses.editable.ids[int(number)] for number in numbers)
