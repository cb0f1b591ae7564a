"""A view of a word in, what a person reads out: blocks of lines, each in the colour of its group.

    in   a view, and the word with its groups, if they are there
    out  `WordPage`: blocks (groups, or the user's own labels), and which lines stand in them

A filter never changes groups: what does not meet it is left out of the lines, and greyed on the
map.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len

from polyseme.display import printable
from polyseme.explorer.explored_word import ExploredWord, Sorting
from polyseme.explorer.language import PageError, told_as
from polyseme.explorer.view import View
from polyseme.meanings.concordance.conditions import EVERYTHING, Condition
from polyseme.meanings.concordance.lines import (
    line_of,
    metadata_columns,
    shortened,
    shown_value,
    sort_order,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_features import Floats, Labels
from polyseme.meanings.groups.senses import NamedGroup, Senses
from polyseme.meanings.labels import LearnedLabels
from polyseme.meanings.use_map import NUM_COLOURS, colour_of

_LONGEST_VALUE = 60  # characters; FEATS of CoNLL-U can be long


class AnnotatedWord(NamedTuple):
    """A word and what is shown under it."""

    word: str
    value: str  # empty where there is none
    space: str  # what stands between it and the next


class AnnotatedLine(NamedTuple):
    """A use with all of its sentence around it."""

    left: tuple[AnnotatedWord, ...]
    form: tuple[AnnotatedWord, ...]
    right: tuple[AnnotatedWord, ...]

    def cut(self, longest: int) -> "AnnotatedLine":
        """With so many characters on either side, or a word more; a mark stands for the others."""
        mark = (AnnotatedWord("…", "", ""),)
        left, right = tuple(_within(reversed(self.left), longest))[::-1], self.right
        right = tuple(_within(right, longest))
        return AnnotatedLine(
            left if len(left) == len(self.left) else mark + left,
            self.form,
            right if len(right) == len(self.right) else right + mark,
        )


def annotate(uses: Uses, number: int, attribute: str) -> AnnotatedLine:
    """The line of a use."""
    use = uses[number]
    ends = [start + len(word) for start, word in zip(use.starts, use.words, strict=True)]
    nexts = [*use.starts[1:], ends[-1]]
    words = tuple(
        AnnotatedWord(printable(word), _shortened(value or ""), printable(use.text[end:start]))
        for word, value, end, start in zip(
            use.words, uses.attribute(number, attribute), ends, nexts, strict=True
        )
    )
    return AnnotatedLine(words[: use.begin], words[use.begin : use.end], words[use.end :])


def _shortened(value: str) -> str:
    shown = printable(value)
    return shown if len(shown) <= _LONGEST_VALUE else shown[: _LONGEST_VALUE - 1] + "…"


def _within(words: Iterable[AnnotatedWord], longest: int) -> Iterator[AnnotatedWord]:
    room = longest
    for each in words:
        if room <= 0:
            return
        yield each._replace(word=each.word[:longest])
        room -= len(each.word) + len(each.space)


PER_PAGE = 50
_LONGEST = 140  # cells on either side of a word in a line: a sentence may have thousands


@dataclass(frozen=True, eq=False)
class GroupBlock:
    """Lines of one group."""

    group: NamedGroup
    colour: int  # from 1; 0 is no colour
    uses: Labels  # numbers of its uses, the most typical first
    confidence: float | None = None  # of labels that were learned: the mean

    @property
    def id(self) -> str:
        """That of the group."""
        return self.group.id

    @property
    def name(self) -> str:
        """That of the group."""
        return self.group.name


@dataclass(frozen=True)
class Row:
    """A line of the concordance."""

    number: int
    left: str
    form: str
    right: str
    colour: int
    block: str
    label: str  # the user's own
    confidence: float | None
    metadata: tuple[str, ...]  # a date, a title and what else there is, as far as it fits
    words: AnnotatedLine | None
    """Left, form and right once more, word by word, if the view shows a word attribute."""


@dataclass(eq=False)
class WordPage:
    """What a view shows of a word."""

    view: View
    word: ExploredWord
    edited: Senses | None  # None as long as groups are not there
    where: Condition = EVERYTHING  # what metadata must meet

    @property
    def places(self) -> Floats | None:
        """(N, 2) a place on the map for each use, if they are there."""
        return self.word.places(self.view.grouping)

    @property
    def is_overview(self) -> bool:
        """Whether all blocks are shown, a few lines of each."""
        view = self.view
        is_chosen = view.group or view.uses or view.sort or view.like is not None
        return bool(self.blocks) and not is_chosen and not self.is_unsorted

    @property
    def sorting(self) -> Sorting | None:
        """The uses as the user sorts them, if the view asks for that and groups are there."""
        if self.view.show != "labels" or self.edited is None:
            return None
        return self.word.sorting(self.edited)

    @property
    def is_unsorted(self) -> bool:
        """Whether the user is to sort the lines, and has not yet named two senses."""
        return self.sorting is not None and self.learned is None

    @property
    def form_width(self) -> str:
        """How wide the column of the word itself is: as all blocks have the same, by the query."""
        view = self.view
        if view.regex or view.attribute:
            return ""
        cells = max(map(cell_len, view.q.replace("，", ",").split(",")), default=0)
        return "short" if cells <= 2 else "medium" if cells <= 6 else ""

    @property
    def learned(self) -> LearnedLabels | None:
        """What follows from the user's labels, if the view asks for it and there are two."""
        return self.sorting.learned if self.sorting else None

    @property
    def senses(self) -> Senses | None:
        """Groups as the user left them; or, if the view asks for it, one for each label."""
        return (self.sorting and self.sorting.senses) or self.edited

    @cached_property
    def blocks(self) -> list[GroupBlock]:
        """Groups; or labels."""
        if self.senses is None:
            return []
        most_typical = self.senses.grouping.most_typical
        blocks = [
            GroupBlock(group, colour_of(group.id), most_typical(group.number - 1, group.size))
            for group in self.senses.groups
        ]
        learned = self.learned
        if learned is None:  # the colours are for the user's own senses
            return [replace(block, colour=0) for block in blocks] if self.is_unsorted else blocks
        return [_of_label(number, block, learned) for number, block in enumerate(blocks)]

    @cached_property
    def block_of(self) -> Mapping[int, GroupBlock]:
        """The block of each use."""
        return {int(number): block for block in self.blocks for number in block.uses}

    @cached_property
    def chosen(self) -> Labels:
        """Numbers of the uses of any block that meet the filters, in the order of the corpus."""
        view, uses = self.view, self.word.uses
        found = uses.matching(self.where)
        if view.uses:
            check_number(max(view.uses), len(uses))
            found = np.intersect1d(found, view.uses)
        return found

    @cached_property
    def lit(self) -> Labels:
        """Those of the block that is shown, if only one is."""
        return np.sort(self.uses_in(self._block())) if self.view.group else self.chosen

    @property
    def is_narrowed(self) -> bool:
        """Whether uses of any block are left out."""
        return bool(self.view.where or self.view.uses)

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return bool(self.is_narrowed or self.view.group)

    def uses_in(self, block: GroupBlock) -> Labels:
        """Its uses that meet the filters, the most typical first."""
        return block.uses[np.isin(block.uses, self.chosen)]

    @cached_property
    def shown_blocks(self) -> list[GroupBlock]:
        """Blocks with a use that meets the filters."""
        return [block for block in self.blocks if len(self.uses_in(block))]

    def share(self, block: GroupBlock) -> float:
        """How much of all that meets the filters is in a block."""
        return len(self.uses_in(block)) / max(1, len(self.chosen))

    def by_hand(self, block: GroupBlock) -> int:
        """How many of these uses the user labelled so."""
        given = self.learned.given if self.learned else {}
        return sum(given.get(int(number)) == block.id for number in self.uses_in(block))

    @cached_property
    def ordered(self) -> Labels:
        """All lines of the view, sorted."""
        view, lit = self.view, self.lit
        if view.like is not None and self.edited is not None:
            check_number(view.like, len(self.word.uses))
            vectors = self.edited.grouping.vectors
            return lit[np.argsort(-(vectors[lit] @ vectors[view.like]), kind="stable")]
        if view.sort in ("", "typical"):
            blocks = [self._block()] if view.group else self.blocks
            return np.concatenate([self.uses_in(block) for block in blocks]) if blocks else lit
        if view.sort == "corpus":
            return lit
        if view.sort == "confidence" and self.learned is not None:
            return lit[np.argsort(self.learned.confidence[lit], kind="stable")]
        with told_as("bad_sort", name=view.sort, columns=", ".join(self.word.uses.columns)):
            return lit[sort_order(self.word.uses.select(lit), view.sort)]

    @property
    def num_pages(self) -> int:
        """Pages of `ordered`."""
        return max(1, -(-len(self.ordered) // PER_PAGE))

    def page(self) -> list[Row]:
        """The lines of the view's page."""
        begin = (min(self.view.page, self.num_pages) - 1) * PER_PAGE
        return list(self.rows(self.ordered[begin : begin + PER_PAGE]))

    def rows(self, numbers: Labels | Sequence[int]) -> Iterator[Row]:
        """Lines of these uses."""
        columns = metadata_columns(self.word.uses.columns)
        labels = self.edited.labels_by_hand if self.edited else {}
        attribute = self.view.attribute
        for number in map(int, numbers):
            use = self.word.uses[number]
            left, form, right = shortened(line_of(use), _LONGEST)
            known = {DOCUMENT: use.document, **use.metadata}
            block = self.block_of.get(number)
            yield Row(
                number,
                left,
                form,
                right,
                block.colour if block else 0,
                block.id if block else "",
                labels.get(number, ""),
                float(self.learned.confidence[number]) if self.learned else None,
                tuple(printable(shown_value(name, known[name] or "–")) for name in columns),
                annotate(self.word.uses, number, attribute).cut(_LONGEST) if attribute else None,
            )

    def next_to_label(self) -> list[Row]:
        """Lines whose label would teach most."""
        return list(self.rows(self.sorting.next_lines)) if self.sorting else []

    def _block(self) -> GroupBlock:
        for block in self.blocks:
            if block.id == self.view.group:
                return block
        raise PageError("no_group", id=self.view.group)


def check_number(number: int, of: int) -> None:
    """Refuse the number of a use that is not there."""
    if not 0 <= number < of:
        raise PageError("no_such_use", n=of)


def _of_label(number: int, block: GroupBlock, learned: LearnedLabels) -> GroupBlock:
    """The surest uses first, those that the user labelled before all."""
    confidence = learned.confidence[block.uses]
    uses = block.uses[np.argsort(-confidence, kind="stable")]
    others = [learned.confidence[number] for number in uses if int(number) not in learned.given]
    mean = float(np.mean(others)) if others else None
    return replace(block, colour=1 + number % NUM_COLOURS, uses=uses, confidence=mean)
