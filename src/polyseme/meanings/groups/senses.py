"""The uses of a word in groups by meaning, with names, typical lines and figures.

    in   uses, and an encoder that knows their features
    out  `Senses`, which can be grouped again, edited, written as a table and drawn as a map

A group is found in the texts, not looked up: see `grouping.py`. Edits of a user (`edits.py`) are
applied to the groups that were found. They know a use by its sentence and its index there, and a
group by its uses, so a log outlives the corpus it was made on.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.display import describe_groups, html_table, summary
from polyseme.errors import ConfigError, InputError, extra_needed_for
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.export import Tabular
from polyseme.meanings.concordance.kept_senses import KeptSenses, Reliability, keep_senses
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Use, Uses, UseTable
from polyseme.meanings.edits import (
    NUM_KEPT,
    Edit,
    GroupRef,
    Members,
    Replayed,
    ReplayProblem,
    UseGroup,
    UseId,
    read_edits,
    replay,
)
from polyseme.meanings.features.use_features import Labels, UseEncoder, UseFeatures
from polyseme.meanings.groups.calibration import LOW, Calibration, calibration_of, encode_uses
from polyseme.meanings.groups.grouping import FEW_USES, Grouping, group_uses
from polyseme.meanings.groups.names import GroupName, NameSource, first_copies
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.meanings.use_map.widget import UseMapWidget

MAX_USES = 5_000
"""Uses that are encoded, sampled by seed: more cost time and change little."""
NUM_TYPICAL = 5


@dataclass(frozen=True)
class NamedGroup:
    """Uses that belong together."""

    number: int
    """From 1; the largest group is the first."""
    size: int
    share: float
    stability: float | None
    """How much of it comes together again when part of the uses are grouped again: 1 is all.

    None, if a user put it together.
    """
    substitutes: tuple[str, ...]
    """What could stand in the word's place here more than in the other groups."""
    collocates: tuple[str, ...]
    """What stands near the word here more than in the other groups."""
    frames: tuple[str, ...]
    """How the word is used here: with the words next to it, itself as ~."""
    typical: tuple[int, ...]
    """Numbers of the uses nearest to the middle of the group."""
    given_name: str = ""
    """What a user calls it."""
    given_id: str = ""
    """Which group it is in a log of edits, if these groups were edited."""

    @property
    def id(self) -> str:
        """What edits know it by: its number when it was found, whatever happened since."""
        return self.given_id or str(self.number)

    @property
    def shown_id(self) -> int | str:
        """Its id as a table has it: a number, if it is one."""
        return int(self.id) if self.id.isdecimal() else self.id

    @property
    def name(self) -> str:
        """What a user calls it, or its words in one line, or, without any, its number."""
        return self.given_name or self.words or f"#{self.id}"

    @property
    def is_named(self) -> bool:
        """Whether a user gave it its name."""
        return self.given_name not in ("", self.words, f"#{self.id}")

    @property
    def words(self) -> str:
        """Its substitutes, collocates and frames in one line."""
        return str(GroupName(self.substitutes, self.collocates, self.frames))

    @property
    def short_name(self) -> str:
        """What a user calls it, or the first of its words."""
        if self.is_named:
            return self.given_name
        words = self.substitutes or self.collocates or self.frames
        return ", ".join(words) or f"group {self.id}"


@dataclass(frozen=True, eq=False)
class Senses(Tabular):
    """The uses of a word in groups. `senses.groups[0].name`, `senses.lines(1)`."""

    uses: Uses
    grouping: Grouping
    features: UseFeatures
    groups: tuple[NamedGroup, ...]
    num_found: int
    """Uses there are; `uses` may be a sample of them."""
    calibration: Calibration | None = None
    """How far groups can be believed in this corpus, if that was measured."""
    name_source: NameSource | None = None
    """What groups are named from; without it, edited groups have no words."""
    problems: tuple[ReplayProblem, ...] = ()
    """Edits that do not fit these uses, or not wholly."""
    log_message: str = ""
    """What is wrong with the file of edits, if anything."""
    labels_by_hand: Mapping[int, str] = field(default_factory=dict)
    """A user's own labels from a log of edits, by the number of the use."""
    source_notes: tuple[str, ...] = ()
    """What a reader should know of where the uses come from."""

    @property
    def word(self) -> str:
        """What it is about: the forms that were looked for."""
        query = self.uses.query
        return " / ".join(query.forms) if query else self.uses[0].form

    @property
    def labels(self) -> list[int]:
        """The number of each use's group, from 1."""
        return [int(label) + 1 for label in self.grouping.labels]

    def regrouped(
        self,
        *,
        finer: int = 0,
        num_groups: int | None = None,
        seed: int = 1,
        features: UseFeatures | None = None,
    ) -> "Senses":
        """The same uses grouped again; by other `features`, as they are, if these are given."""
        is_own = features is None
        source = self.name_source
        return self.in_groups(
            group_uses(
                self.features if features is None else features,
                finer=finer,
                num_groups=num_groups,
                seed=seed,
                limits=self.calibration.limits if self.calibration and is_own else None,
                copy_of=source.copy_of if source and is_own else None,
            )
        )

    def in_groups(self, grouping: Grouping, given: Mapping[str, str] | None = None) -> "Senses":
        """The same uses in these groups, with new words; `given`: ids of the groups and the names
        that a user gave them, in their order."""
        groups = name_groups(self.name_source, grouping)
        if given is not None:
            pairs = zip(groups, given.items(), strict=True)
            groups = tuple(replace(group, given_id=i, given_name=n) for group, (i, n) in pairs)
        return replace(self, grouping=grouping, groups=groups)

    @cached_property
    def editable(self) -> "EditableGroups":
        """What edits are made of and applied to."""
        return EditableGroups.of(self)

    def edited(self, edits: str | PathLike[str] | Sequence[Edit]) -> "Senses":
        """These groups after edits: those of a file, or a list of them, applied in order."""
        message = ""
        if isinstance(edits, str | PathLike):
            if not Path(edits).is_file():
                raise InputError(f"There is no file of edits at {Path(edits)}.")
            log = read_edits(Path(edits))
            edits, message = log.edits, log.message
        if not edits:
            return self
        found = self._as_replayed(self.editable.replay(edits))
        return replace(found, log_message=message) if message else found

    def _as_replayed(self, replayed: Replayed) -> "Senses":
        """In the groups that edits left. Those that stayed whole keep their stability."""
        ids = use_ids(self.uses)
        home = {use: id_ for id_, group in replayed.groups.items() for use in group.uses}
        order = sorted(replayed.groups, key=lambda id_: (-len(replayed.groups[id_].uses), id_))
        number = {id_: index for index, id_ in enumerate(order)}
        labels = np.array([number[home[use]] for use in ids], np.int64)
        stability = tuple(self._stability_of(id_, labels == number[id_]) for id_ in order)
        grouping = replace(self.grouping, labels=labels, stability=stability)
        found = self.in_groups(grouping, {id_: replayed.groups[id_].name for id_ in order})
        numbers: dict[UseId, list[int]] = defaultdict(list)
        for index, use in enumerate(ids):
            numbers[use].append(index)
        by_hand = {n: label for use, label in replayed.labels.items() for n in numbers[use]}
        return replace(found, problems=replayed.problems, labels_by_hand=by_hand)

    def _stability_of(self, id_: str, members: Labels) -> float:
        """As it was, if the group has the uses it had; else nobody knows."""
        before = next((group for group in self.groups if group.id == id_), None)
        if before is None or before.stability is None:
            return math.nan
        is_same = np.array_equal(self.grouping.labels == before.number - 1, members)
        return before.stability if is_same else math.nan

    def map(self, *, seed: int = 1) -> "UseMapWidget":
        """A map of the uses for a notebook, to point at and to choose from (package anywidget).

        `widget.selection` has the numbers of the uses that are chosen, and can be set.
        """
        with extra_needed_for("A map in a notebook"):
            from polyseme.meanings.use_map.widget import UseMapWidget
        groups = [(group.id, group.name, group.size) for group in self.groups]
        return UseMapWidget(self.uses, self.grouping.vectors, self.labels, groups, seed=seed)

    def lines(self, group: int, number: int = NUM_TYPICAL) -> Iterator[Use]:
        """The most typical uses of a group."""
        for index in self.grouping.most_typical(group - 1, number):
            yield self.uses[int(index)]

    @property
    def notes(self) -> list[str]:
        """What a reader should know before trusting the groups."""
        notes = [*self.source_notes, *(problem.message for problem in self.problems)]
        if self.grouping.is_one_meaning:
            notes.append(
                "One group: its halves are no more separate than those of a word with one meaning "
                f"({self.grouping.separation:.2f}). To split them all the same: --finer 1 or "
                "--groups 2."
            )
        notes += [self.calibration.note] if self.calibration else []
        notes += [self.log_message] if self.log_message else []
        if len(self.uses) < self.num_found:
            notes.append(f"A random sample of {len(self.uses):,} of {self.num_found:,} uses.")
        if len(self.uses) < FEW_USES:
            notes.append(
                f"{len(self.uses)} uses are few: below {FEW_USES}, groups are often due to chance."
            )
        return notes

    def __repr__(self) -> str:
        size = describe_groups(len(self.uses), len(self.groups))
        return summary("Senses", size, *(f"{g.share:.0%} {g.name}" for g in self.groups))

    def _repr_html_(self) -> str:
        header = ("group", "uses", "share", "stability", "substitutes", "collocates", "frames",
                  "typical use")  # fmt: skip
        rows = [
            (
                group.number,
                group.size,
                f"{group.share:.0%}",
                "" if group.stability is None else group.stability,
                " ".join(group.substitutes),
                " ".join(group.collocates),
                "; ".join(group.frames),
                self.uses[group.typical[0]].text,
            )
            for group in self.groups
        ]
        return html_table(repr(self), rows, header)

    def table(self) -> UseTable:
        """The uses, one per row, with its number and the id and the name of its group."""
        groups = [self.groups[number - 1] for number in self.labels]
        first: dict[str, Sequence[str | float | None]] = {
            "group": [group.shown_id for group in groups],
            "group_name": [group.name for group in groups],
            "use": range(1, len(groups) + 1),
        }
        return UseTable(self.uses, first)

    def to_json(self) -> dict[str, Any]:
        """Plain values: the groups, each with its typical uses."""
        groups = [
            {
                "group": group.shown_id,
                "name": group.name,
                "uses": group.size,
                "share": round(group.share, 4),
                "stability": None if group.stability is None else round(group.stability, 4),
                "substitutes": list(group.substitutes),
                "collocates": list(group.collocates),
                "frames": list(group.frames),
                "typical": [self.uses[index].text for index in group.typical],
            }
            for group in self.groups
        ]
        size = {"uses": len(self.uses), "found": self.num_found}
        return {**size, "groups": groups, "notes": self.notes}


def find_senses(
    uses: Uses,
    encoder: UseEncoder,
    *,
    finer: int = 0,
    num_groups: int | None = None,
    seed: int = 1,
    progress: Progress = SILENT,
) -> Senses:
    """Encode uses, group them, name the groups. The same seed gives the same groups."""
    chosen, corpus = draw_uses(uses, seed), uses.corpus
    progress.start("Describing uses", len(chosen))
    features = encode_uses(chosen, encoder, progress.update)
    calibration = calibration_of(corpus, encoder, progress) if corpus else None
    sentences = chosen.sentences()
    source = NameSource(
        sentences,
        chosen.spans,
        Background.of_sentences(sentences) if corpus is None else Background.of(corpus),
        None if calibration and calibration.ari < LOW else features.substitutes,
        encoder.words,
        chosen.metadata(DOCUMENT),
        first_copies(sentences, chosen.spans),
    )
    nothing = Grouping(np.zeros(len(chosen), np.int64), (), features.context)
    ungrouped = Senses(chosen, nothing, features, (), len(uses), calibration, source)
    return ungrouped.regrouped(finer=finer, num_groups=num_groups, seed=seed)


def draw_uses(uses: Uses, seed: int = 1) -> Uses:
    """All uses, or a sample of `MAX_USES`, in their order.

    A use is drawn by a hash of its sentence, so that as a corpus grows those that were drawn stay,
    but for the few whose places others take; and with them what a user said of them.
    """
    if len(uses) <= MAX_USES:
        return uses
    hashes = uses.hashes(seed)
    return uses.select(np.sort(np.argsort(hashes, kind="stable")[:MAX_USES]))


def name_groups(source: NameSource | None, grouping: Grouping) -> tuple[NamedGroup, ...]:
    """The groups with their figures, their typical uses and the words that set them apart."""
    labels, number = grouping.labels, grouping.num_groups
    sizes = np.bincount(labels, minlength=number).tolist()
    names = source.names(labels) if source else [GroupName()] * number
    return tuple(
        NamedGroup(
            number + 1,
            size,
            size / len(labels),
            None if math.isnan(grouping.stability[number]) else grouping.stability[number],
            name.substitutes,
            name.collocates,
            name.frames,
            tuple(grouping.most_typical(number, NUM_TYPICAL).tolist()),
        )
        for number, (size, name) in enumerate(zip(sizes, names, strict=True))
    )


def keep_groups(corpus: Corpus, senses: Senses, source: Path) -> KeptSenses:
    """Keep the groups that a person named, and labels that a person gave; these go first."""
    groups = [senses.groups[number - 1] for number in senses.labels]
    names = [group.given_name if group.is_named else "" for group in groups]
    for number, label in senses.labels_by_hand.items():
        names[number] = label
    if not any(names):
        raise InputError(
            f"No group of {senses.word} has a name that you gave, and no use a label. Name one "
            "with `polyseme edit` or in the explorer."
        )
    trust = senses.calibration
    reliability = Reliability.of_groups(trust.ari, trust.error) if trust else None
    uses = senses.uses
    return keep_senses(
        corpus, senses.word, uses.places, names, reliability, source, forms=uses.forms()
    )


def use_ids(uses: Uses) -> list[UseId]:
    """What edits know each use by."""
    begins = uses.spans[:, 0].tolist()
    return [UseId(*pair) for pair in zip(uses.sentence_ids(), begins, strict=True)]


def use_fingerprints(uses: Uses) -> list[str]:
    """What groups are recognized by: each use's sentence and where the word is in it, hashed.

    The same wherever the sentence stands and however it is divided into words. Uses in equal
    sentences have equal ones.
    """
    found = []
    for words, begin in zip(uses.sentences(), uses.spans[:, 0].tolist(), strict=True):
        content = f"{sum(map(len, words[:begin]))} {''.join(words)}"
        digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=6)
        found.append(digest.hexdigest())
    return found


@dataclass(frozen=True)
class EditableGroups:
    """Groups as edits see them: ids, names and uses, without anything of a model."""

    uses: Uses
    ids: Sequence[UseId]  # of each use
    groups: Mapping[str, UseGroup]
    """By id. Uses that begin at the same word, as "bank" and "bank account" do, go together."""
    fingerprints: Mapping[UseId, str]

    @classmethod
    def of(cls, senses: Senses) -> "EditableGroups":
        """Those of senses."""
        groups = [senses.groups[number - 1] for number in senses.labels]
        names = {group.id: group.name for group in senses.groups}
        return cls.of_ids(senses.uses, [group.id for group in groups], names)

    @classmethod
    def of_ids(
        cls, uses: Uses, groups: Sequence[str], names: Mapping[str, str]
    ) -> "EditableGroups":
        """From the id of each use's group, and the name of each group."""
        ids = use_ids(uses)
        members: dict[str, set[UseId]] = {id_: set() for id_ in names}
        for use, group in dict(reversed(list(zip(ids, groups, strict=True)))).items():
            members[group].add(use)
        found = {i: UseGroup(names[i], frozenset(some)) for i, some in members.items() if some}
        return cls(uses, ids, found, dict(zip(ids, use_fingerprints(uses), strict=True)))

    def replay(self, edits: Sequence[Edit]) -> Replayed:
        """What edits make of the groups."""
        return replay(self.groups, edits, self.fingerprints)

    def edited(self, edits: Sequence[Edit]) -> "EditableGroups":
        """The groups after edits."""
        return replace(self, groups=self.replay(edits).groups)

    def group(self, id_: str) -> UseGroup:
        """The group with this id, or an error that names those there are."""
        if id_ not in self.groups:
            known = ", ".join(self.groups)
            raise InputError(f"There is no group {id_!r}. The groups are: {known}.")
        return self.groups[id_]

    def ref(self, id_: str) -> GroupRef:
        """A group as an edit names it, with what it can be recognized by."""
        name, uses = self.group(id_)
        inside = {self.fingerprints[use] for use in uses}
        outside = {self.fingerprints[use] for use in self.fingerprints.keys() - uses}
        ref = GroupRef(id=id_, name=name)
        if not (own := inside - outside):
            return ref  # all of its sentences are in other groups, too
        # The smallest hashes are a random sample, and the same one for the same uses.
        members = Members(
            inside=tuple(sorted(own)[:NUM_KEPT]),
            outside=tuple(sorted(outside - inside)[:NUM_KEPT]),
            num_inside=len(uses),
            num_outside=len(self.fingerprints) - len(uses),
        )
        return ref.model_copy(update={"members": members})

    def new_id(self, edits: Sequence[Edit]) -> str:
        """A number that no group has or ever had."""
        taken = set(self.groups)
        for edit in edits:
            match edit.kind:
                case "split":
                    taken |= {edit.group.id, edit.new.id}
                case "merge":
                    taken |= {group.id for group in edit.groups}
                case _:
                    pass
        return str(1 + max((int(id_) for id_ in taken if id_.isdecimal()), default=0))

    def choose(
        self, numbers: Sequence[int], pattern: str | None, within: str | None = None
    ) -> tuple[UseId, ...]:
        """Uses by their numbers, from 1 as in tables of `senses`, or by what their sentence holds.

        `within`: only those of this group.
        """
        if bool(numbers) == (pattern is not None):
            raise ConfigError(
                "Say which uses: --uses with their numbers, or --containing a pattern."
            )
        if wrong := [number for number in numbers if not 1 <= number <= len(self.uses)]:
            raise InputError(f"There is no use {wrong[0]}: they are 1 to {len(self.uses):,}.")
        chosen = [number - 1 for number in numbers]
        if pattern is not None:
            chosen = _containing(self.uses, pattern)
        found = dict.fromkeys(self.ids[number] for number in chosen)
        if within is not None:
            members = self.group(within).uses
            found = dict.fromkeys(use for use in found if use in members)
        if not found:
            raise InputError("No use matches. Nothing was changed.")
        return tuple(found)


def _containing(uses: Uses, pattern: str) -> list[int]:
    texts = pa.array([use.text for use in uses], pa.string())
    try:
        matches = pc.match_substring_regex(texts, pattern, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"{pattern!r} is not a valid RE2 expression: {error}.") from error
    return [int(n) for n in np.flatnonzero(matches.to_numpy(zero_copy_only=False))]
