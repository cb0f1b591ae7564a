"""Uses of a word in, its groups with names, typical lines and figures out: what a person reads.

A group is found, not looked up: see `groups.py`. Everything here can be had as a table.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.display import describe_groups, html_table, summary
from polyseme.errors import extra_needed_for
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.export import UseTable, to_pandas, write_uses
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.meanings.features.use_features import Describer, UseFeatures
from polyseme.meanings.groups.calibration import (
    LOW,
    Calibration,
    calibration_of,
    describe_uses,
)
from polyseme.meanings.groups.grouping import FEW_USES, Grouping, group_uses
from polyseme.meanings.groups.names import GroupName, NameSource, first_copies
from polyseme.progress import NullProgress, Progress

if TYPE_CHECKING:
    import pandas

    from polyseme.meanings.annotation.edits import Edit, ReplayProblem
    from polyseme.meanings.use_map.widget import UseMapWidget

MAX_USES = 5_000
"""Uses that are described, sampled by seed: more cost time and change little."""
NUM_TYPICAL = 5
_NAME_PARTS = ("substitutes", "collocates", "frames")


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
        """What a user calls it, or its words in one line."""
        return self.given_name or self.words

    @property
    def words(self) -> str:
        """Its substitutes, collocates and frames in one line."""
        return str(GroupName(self.substitutes, self.collocates, self.frames))


@dataclass(frozen=True, eq=False)
class Senses:
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
    problems: "tuple[ReplayProblem, ...]" = ()
    """Edits that do not fit these uses, or not wholly."""
    log_message: str = ""
    """What is wrong with the file of edits, if anything."""
    labels_by_hand: Mapping[int, str] = field(default_factory=dict)
    """A user's own labels from a log of edits, by the number of the use."""
    source_notes: tuple[str, ...] = ()
    """What a reader should know of where the uses come from."""

    @property
    def labels(self) -> list[int]:
        """The number of each use's group, from 1."""
        return [int(label) + 1 for label in self.grouping.labels]

    def edited(self, edits: "str | PathLike[str] | Sequence[Edit]") -> "Senses":
        """These groups after edits: those of a file, or a list of them, done again in order."""
        from polyseme.meanings.annotation.edited_groups import apply_edits

        return apply_edits(self, edits)

    def map(self, *, seed: int = 1) -> "UseMapWidget":
        """A map of the uses for a notebook, to point at and to choose from (extra `notebook`).

        `widget.selection` has the numbers of the uses that are chosen, and can be set.
        """
        with extra_needed_for("A map in a notebook"):
            from polyseme.meanings.use_map.widget import UseMapWidget
        return UseMapWidget(self, seed=seed)

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
        header = ("group", "uses", "share", "stability", *_NAME_PARTS, "typical use")
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

    def to_pandas(self) -> "pandas.DataFrame":
        """`table` as a data frame; needs the package pandas."""
        return to_pandas(self.table())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """`table` for a spreadsheet or any other tool."""
        write_uses(self.table(), Path(path), kind=".csv")

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
    describer: Describer,
    *,
    finer: int = 0,
    num_groups: int | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> Senses:
    """Describe uses, group them, name the groups. The same seed gives the same groups."""
    progress = progress or NullProgress()
    chosen = draw_uses(uses, seed)
    progress.start("Describing uses", len(chosen))
    features = describe_uses(chosen, describer, progress.update)
    calibration = calibration_of(uses.corpus, describer, progress) if uses.corpus else None
    source = name_source(chosen, features, describer, calibration)
    grouping = group_uses(
        features,
        finer=finer,
        num_groups=num_groups,
        seed=seed,
        limits=calibration.limits if calibration else None,
        copy_of=source.copy_of,
    )
    groups = name_groups(source, grouping)
    return Senses(chosen, grouping, features, groups, len(uses), calibration, source)


def draw_uses(uses: Uses, seed: int = 1) -> Uses:
    """All uses, or a sample of `MAX_USES`, in their order.

    A use is drawn by a hash of its sentence, so that as a corpus grows those that were drawn stay,
    but for the few whose places others take; and with them what a user said of them.
    """
    if len(uses) <= MAX_USES:
        return uses
    hashes = uses.hashes(seed)
    return uses.select(np.sort(np.argsort(hashes, kind="stable")[:MAX_USES]))


def name_source(
    uses: Uses,
    features: UseFeatures,
    describer: Describer,
    calibration: Calibration | None = None,
) -> NameSource:
    """What the groups of these uses are named from."""
    sentences = uses.sentences()
    corpus = uses.corpus
    return NameSource(
        sentences,
        uses.spans,
        Background.of_sentences(sentences) if corpus is None else Background.of(corpus),
        None if calibration and calibration.ari < LOW else features.substitutes,
        describer.words,
        uses.metadata(DOCUMENT),
        first_copies(sentences, uses.spans),
    )


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
