"""Groups of uses as a user left them: a log of edits done again on the groups that were found.

    in   senses, and edits of their groups: from `edits.jsonl`, or made here
    out  senses with the user's groups and names; what could not be done again is told

A use is known by its sentence and its place there, and a group by its uses, so a log outlives the
corpus it was made on.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.errors import ConfigError, InputError
from polyseme.meanings.annotation.edit_log import read_edits
from polyseme.meanings.annotation.edits import (
    NUM_KEPT,
    Edit,
    GroupRef,
    Members,
    Replayed,
    UseGroup,
    UseId,
    replay,
)
from polyseme.meanings.annotation.labels import LearnedLabels
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import Labels
from polyseme.meanings.groups.named_groups import NamedGroup, Senses, name_groups


def use_ids(uses: Uses) -> list[UseId]:
    """What edits know each use by."""
    begins = uses.spans[:, 0].tolist()
    return [UseId(*pair) for pair in zip(uses.sentence_ids(), begins, strict=True)]


def use_fingerprints(uses: Uses) -> list[str]:
    """What groups are recognized by: each use's sentence and where the word is in it, hashed.

    The same wherever the sentence stands and however it is divided into words. Uses in equal
    sentences have equal ones.
    """
    begins = uses.spans[:, 0].tolist()
    return [
        _fingerprint("".join(words[:begin]), "".join(words[begin:]))
        for words, begin in zip(uses.sentences(), begins, strict=True)
    ]


def _fingerprint(before: str, after: str) -> str:
    content = f"{len(before)} {before}{after}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def use_groups(senses: Senses) -> dict[str, UseGroup]:
    """The groups as `replay` takes them: by id, each with its name and its uses.

    Uses that begin at the same word, as "bank" and "bank account" do, go together.
    """
    members: dict[str, set[UseId]] = {group.id: set() for group in senses.groups}
    pairs = zip(use_ids(senses.uses), senses.labels, strict=True)
    for use, number in dict(reversed(list(pairs))).items():
        members[senses.groups[number - 1].id].add(use)
    names = {group.id: group.name for group in senses.groups}
    return {id_: UseGroup(names[id_], frozenset(uses)) for id_, uses in members.items() if uses}


def apply_edits(senses: Senses, edits: str | PathLike[str] | Sequence[Edit]) -> Senses:
    """Do edits again: those of a file, or these. The senses that are given stay as they are."""
    message = ""
    if isinstance(edits, str | PathLike):
        if not Path(edits).is_file():
            raise InputError(f"There is no file of edits at {Path(edits)}.")
        log = read_edits(Path(edits))
        edits, message = log.edits, log.message
    if not edits:
        return senses
    fingerprints = dict(zip(use_ids(senses.uses), use_fingerprints(senses.uses), strict=True))
    found = as_replayed(senses, replay(use_groups(senses), edits, fingerprints))
    if message:
        found = replace(found, log_message=message)
    return found


def as_replayed(senses: Senses, replayed: Replayed) -> Senses:
    """The senses in the groups that edits left. Those that stayed whole keep their stability."""
    ids = use_ids(senses.uses)
    home = {use: id_ for id_, group in replayed.groups.items() for use in group.uses}
    order = sorted(replayed.groups, key=lambda id_: (-len(replayed.groups[id_].uses), id_))
    number = {id_: place for place, id_ in enumerate(order)}
    labels = np.array([number[home[use]] for use in ids], np.int64)
    stability = [_stability_of(id_, labels == number[id_], senses) for id_ in order]
    grouping = replace(senses.grouping, labels=labels, stability=tuple(stability))
    groups = [
        replace(group, given_id=id_, given_name=replayed.groups[id_].name)
        for id_, group in zip(order, name_groups(senses.name_source, grouping), strict=True)
    ]
    places: dict[UseId, list[int]] = defaultdict(list)
    for place, use in enumerate(ids):
        places[use].append(place)
    by_hand = {n: label for use, label in replayed.labels.items() for n in places[use]}
    return replace(
        senses,
        grouping=grouping,
        groups=tuple(groups),
        problems=replayed.problems,
        labels_by_hand=by_hand,
    )


def grouped_by_label(senses: Senses, learned: LearnedLabels) -> Senses:
    """The senses with a group for each label, those that were given first in the log first."""
    order = list(dict.fromkeys([*senses.labels_by_hand.values(), *learned.labels]))
    labels = np.array([order.index(label) for label in learned.labels], np.int64)
    unknown = (math.nan,) * len(order)
    grouping = replace(senses.grouping, labels=labels, stability=unknown, is_one_meaning=False)
    groups = [
        replace(group, given_id=label, given_name=label)
        for label, group in zip(order, name_groups(senses.name_source, grouping), strict=True)
    ]
    return replace(senses, grouping=grouping, groups=tuple(groups), calibration=None)


def _stability_of(id_: str, members: Labels, senses: Senses) -> float:
    """As it was, if the group has the uses it had; else nobody knows."""
    before = next((group for group in senses.groups if group.id == id_), None)
    if before is None or before.stability is None:
        return math.nan
    is_same = np.array_equal(senses.grouping.labels == before.number - 1, members)
    return before.stability if is_same else math.nan


def group_ref(senses: Senses, id_: str) -> GroupRef:
    """A group as an edit names it, with what it can be recognized by."""
    group = group_of(senses, id_)
    fingerprints = dict(zip(use_ids(senses.uses), use_fingerprints(senses.uses), strict=True))
    groups = use_groups(senses)
    uses = groups[group.id].uses if group.id in groups else frozenset[UseId]()
    inside = {fingerprints[use] for use in uses}
    outside = {fingerprints[use] for use in fingerprints.keys() - uses}
    ref = GroupRef(id=group.id, name=group.name)
    if not (own := inside - outside):
        return ref  # all of its sentences are in other groups, too
    # The smallest hashes are a random sample, and the same one for the same uses.
    members = Members(
        inside=tuple(sorted(own)[:NUM_KEPT]),
        outside=tuple(sorted(outside - inside)[:NUM_KEPT]),
        num_inside=len(uses),
        num_outside=len(fingerprints) - len(uses),
    )
    return ref.model_copy(update={"members": members})


def group_of(senses: Senses, id_: str) -> NamedGroup:
    """The group with this id, or an error that names those there are."""
    for group in senses.groups:
        if group.id == id_:
            return group
    known = ", ".join(group.id for group in senses.groups)
    raise InputError(f"There is no group {id_!r}. The groups are: {known}.")


def new_group_id(senses: Senses, edits: Sequence[Edit]) -> str:
    """A number that no group has or ever had."""
    taken = {group.id for group in senses.groups}
    for edit in edits:
        match edit.kind:
            case "split":
                taken |= {edit.group.id, edit.new.id}
            case "merge":
                taken |= {group.id for group in edit.groups}
            case _:
                pass
    return str(1 + max((int(id_) for id_ in taken if id_.isdecimal()), default=0))


def choose_uses(
    senses: Senses, numbers: Sequence[int], pattern: str | None, within: str | None = None
) -> tuple[UseId, ...]:
    """Uses by their numbers, as tables of `senses` have them, or by what their sentence holds.

    `within`: only those of this group.
    """
    if bool(numbers) == (pattern is not None):
        raise ConfigError("Say which uses: --uses with their numbers, or --containing a pattern.")
    if wrong := [number for number in numbers if not 1 <= number <= len(senses.uses)]:
        raise InputError(f"There is no use {wrong[0]}: they are 1 to {len(senses.uses):,}.")
    chosen = [number - 1 for number in numbers]
    if pattern is not None:
        chosen = _containing(senses.uses, pattern)
    if within is not None:
        label = group_of(senses, within).number - 1
        chosen = [number for number in chosen if senses.grouping.labels[number] == label]
    if not chosen:
        raise InputError("No use of that group is meant. Nothing was changed.")
    ids = use_ids(senses.uses.select(chosen))
    return tuple(dict.fromkeys(ids))


def _containing(uses: Uses, pattern: str) -> list[int]:
    texts = pa.array([use.text for use in uses], pa.string())
    try:
        matches = pc.match_substring_regex(texts, pattern, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"{pattern!r} is not a valid RE2 expression: {error}.") from error
    return [int(n) for n in np.flatnonzero(matches.to_numpy(zero_copy_only=False))]
