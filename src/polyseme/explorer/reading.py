"""A view of a word in, what a person reads out: bands of lines, each in the colour of its group.

    in   a view, and the word with its groups, if they are there
    out  `Reading`: bands (groups, or the user's own labels), and which lines stand in them

A filter never changes groups: what does not meet it is left out of the lines, and greyed on the
map.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from rich.cells import cell_len

from polyseme.explorer.annotated_line import AnnotatedLine, annotate
from polyseme.explorer.explored_word import ExploredWord, Sorting
from polyseme.explorer.language import PageError, told_as
from polyseme.explorer.view import View
from polyseme.meanings.annotation.labels import LearnedLabels
from polyseme.meanings.concordance.conditions import EVERYTHING, Condition
from polyseme.meanings.concordance.lines import (
    line_of,
    metadata_columns,
    shortened,
    shown_value,
    sort_order,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.features.use_features import Labels
from polyseme.meanings.groups.named_groups import NamedGroup, Senses
from polyseme.meanings.use_map.points import NUM_COLOURS, colour_of
from polyseme.printable import printable

PER_PAGE = 50
IN_OVERVIEW = 6
"""Lines of a band where all are shown."""
_LONGEST = 140  # cells on either side of a word in a line: a sentence may have thousands


@dataclass(frozen=True, eq=False)
class Band:
    """Lines that belong together."""

    id: str
    name: str
    colour: int
    """From 1; 0 is no colour."""
    uses: Labels
    """Numbers of its uses, the most typical first."""
    stability: float | None = None
    substitutes: tuple[str, ...] = ()
    collocates: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    is_named: bool = False
    """Whether the user gave it its name."""
    confidence: float | None = None
    """Of labels that were learned: the mean."""


@dataclass(frozen=True)
class Row:
    """A line of the concordance."""

    number: int
    left: str
    form: str
    right: str
    colour: int
    band: str
    label: str
    """The user's own."""
    confidence: float | None
    metadata: tuple[str, ...]
    """A date, a title and what else there is, as far as it fits."""
    words: AnnotatedLine | None
    """Left, form and right once more, word by word, if the view shows a word attribute."""


@dataclass(eq=False)
class Reading:
    """What a view shows of a word."""

    view: View
    word: ExploredWord
    edited: Senses | None
    """None as long as groups are not there."""
    where: Condition = EVERYTHING
    """What metadata must meet."""

    @property
    def is_overview(self) -> bool:
        """Whether all bands are shown, a few lines of each."""
        view = self.view
        is_chosen = view.group or view.uses or view.sort or view.like is not None
        return bool(self.bands) and not is_chosen and not self.is_unsorted

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
        """How wide the column of the word itself is: as all bands have the same, by the query."""
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
    def bands(self) -> list[Band]:
        """Groups; or labels."""
        if self.senses is None:
            return []
        bands = [_band_of_group(self.senses, group) for group in self.senses.groups]
        learned = self.learned
        if learned is None:  # the colours are for the user's own senses
            return [replace(band, colour=0) for band in bands] if self.is_unsorted else bands
        return [_of_label(number, band, learned) for number, band in enumerate(bands)]

    @cached_property
    def band_of(self) -> Mapping[int, Band]:
        """The band of each use."""
        return {int(number): band for band in self.bands for number in band.uses}

    @cached_property
    def chosen(self) -> Labels:
        """Numbers of the uses of any band that meet the filters, in the order of the corpus."""
        view, uses = self.view, self.word.uses
        found = uses.matching(self.where)
        if view.uses:
            check_number(max(view.uses), len(uses))
            found = np.intersect1d(found, view.uses)
        return found

    @cached_property
    def lit(self) -> Labels:
        """Those of the band that is shown, if only one is."""
        return np.sort(self.in_band(self._band())) if self.view.group else self.chosen

    @property
    def is_narrowed(self) -> bool:
        """Whether uses of any band are left out."""
        return bool(self.view.where or self.view.uses)

    @property
    def is_filtered(self) -> bool:
        """Whether anything is left out."""
        return bool(self.is_narrowed or self.view.group)

    def in_band(self, band: Band) -> Labels:
        """Its uses that meet the filters, the most typical first."""
        return band.uses[np.isin(band.uses, self.chosen)]

    @cached_property
    def shown_bands(self) -> list[Band]:
        """Bands with a use that meets the filters."""
        return [band for band in self.bands if len(self.in_band(band))]

    def share(self, band: Band) -> float:
        """How much of all that meets the filters is in a band."""
        return len(self.in_band(band)) / max(1, len(self.chosen))

    def by_hand(self, band: Band) -> int:
        """How many of these uses the user labelled so."""
        given = self.learned.given if self.learned else {}
        return sum(given.get(int(number)) == band.id for number in self.in_band(band))

    @cached_property
    def ordered(self) -> Labels:
        """All lines of the view, sorted."""
        view, lit = self.view, self.lit
        if view.like is not None and self.edited is not None:
            check_number(view.like, len(self.word.uses))
            vectors = self.edited.grouping.vectors
            return lit[np.argsort(-(vectors[lit] @ vectors[view.like]), kind="stable")]
        if view.sort in ("", "typical"):
            bands = [self._band()] if view.group else self.bands
            return np.concatenate([self.in_band(band) for band in bands]) if bands else lit
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
        for number in map(int, numbers):
            use = self.word.uses[number]
            left, form, right = shortened(line_of(use), _LONGEST)
            known = {DOCUMENT: use.document, **use.metadata}
            band = self.band_of.get(number)
            yield Row(
                number,
                left,
                form,
                right,
                band.colour if band else 0,
                band.id if band else "",
                labels.get(number, ""),
                float(self.learned.confidence[number]) if self.learned else None,
                tuple(printable(shown_value(name, known[name] or "–")) for name in columns),
                self._annotated(number),
            )

    def _annotated(self, number: int) -> AnnotatedLine | None:
        attribute = self.view.attribute
        if not attribute:
            return None
        return annotate(self.word.uses, number, attribute).cut(_LONGEST)

    def next_to_label(self) -> list[Row]:
        """Lines whose label would teach most."""
        return list(self.rows(self.sorting.next_lines)) if self.sorting else []

    def _band(self) -> Band:
        for band in self.bands:
            if band.id == self.view.group:
                return band
        raise PageError("no_group", id=self.view.group)


def check_number(number: int, of: int) -> None:
    """Refuse the number of a use that is not there."""
    if not 0 <= number < of:
        raise PageError("no_such_use", n=of)


def _band_of_group(senses: Senses, group: NamedGroup) -> Band:
    return Band(
        group.id,
        group.name,
        colour_of(group),
        senses.grouping.most_typical(group.number - 1, group.size),
        group.stability,
        group.substitutes,
        group.collocates,
        group.frames,
        is_named=group.name != group.words,
    )


def _of_label(number: int, band: Band, learned: LearnedLabels) -> Band:
    """The surest uses first, those that the user labelled before all."""
    confidence = learned.confidence[band.uses]
    uses = band.uses[np.argsort(-confidence, kind="stable")]
    others = [learned.confidence[number] for number in uses if int(number) not in learned.given]
    mean = float(np.mean(others)) if others else None
    return replace(band, colour=1 + number % NUM_COLOURS, uses=uses, confidence=mean)
