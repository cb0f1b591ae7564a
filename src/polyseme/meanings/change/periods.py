"""The senses of a word over any number of periods: the share of each, with its interval.

    in    the sense, the date and the document of each use; how far the senses can be believed
    out   `SensesOverTime`: for each period the share of each sense, with a 95 % interval

The interval has two parts. **Chance**: documents of a period are drawn again with replacement, a
thousand times; it is never narrower than Wilson's for as many uses as the documents are worth,
since a sense that no document happens to have is absent from all that are drawn from these.
**Sorting**: of groups that were found, a share r is sorted as a person would (`Reliability`), and
nobody knows where the others stand. So the true share is estimated from the observed one under
several assumptions, and the interval covers all estimates: that all uses are sorted right; that the
others stand in the groups by their sizes, or in all groups equally, which gives (q - (1 - r) π) / r
for an observed share q and a share π of the misplaced; and that in this period they all stand in
this group, or all in the others, as where groups follow register: q r and 1 - (1 - q) r. It is an
approximation: r is measured on mixed words, not on this one.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError
from polyseme.meanings.change.measure import (
    Share,
    design_effect,
    effective_number,
    wilson_share,
)
from polyseme.meanings.concordance.conditions import Condition, number_of
from polyseme.meanings.concordance.export import Cell, Tabular
from polyseme.meanings.concordance.kept_senses import KeptSenses, Reliability
from polyseme.meanings.concordance.lines import count_words_by
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.groups.senses import Senses
from polyseme.text.corpus import Corpus

Values = npt.NDArray[np.float64]
_RESAMPLES = 1_000
_LEAST = 0.05  # a reliability below it says nothing
_FEW_DOCUMENTS = 5
_Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True)
class Period:
    """Some years in a row, or other numbers."""

    first: int
    last: int
    uses: int
    documents: int
    """Those with a use."""
    shares: tuple[Share, ...]
    """Of each sense; none, if there are no uses."""
    words: int | None = None
    """How many words the texts of these years have; None if that was not counted."""

    @property
    def label(self) -> str:
        """Its first and last year."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"

    @property
    def empty_label(self) -> str:
        """What stands in the place of shares, where there are none."""
        return "no texts" if self.words == 0 else "no uses"


@dataclass(frozen=True)
class SensesOverTime(Tabular):
    """The share of each sense in each period."""

    word: str
    column: str
    """The metadata that tell when."""
    senses: tuple[str, ...]
    periods: tuple[Period, ...]
    undated: int
    """Uses without a number in the column, which are left out."""
    reliability: Reliability | None
    """Which share of the uses is sorted as a person would; None if that is not known."""
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Of the table."""
        first = ["period", "first", "last", "sense", "uses", "share", "low", "high"]
        return [*first, "uses_in_period", "documents_in_period", "words_in_period"]

    def rows(self) -> Iterator[list[Cell]]:
        """Of the table: by period, then by sense."""
        for each in self.periods:
            for sense, share in zip(self.senses, each.shares, strict=False):
                figures = (round(value, 4) for value in (share.share, share.low, share.high))
                when: list[Cell] = [each.label, each.first, each.last]
                of_period = [each.uses, each.documents, each.words]
                yield [*when, sense, share.count, *figures, *of_period]

    def __len__(self) -> int:
        return sum(len(each.shares) for each in self.periods)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __repr__(self) -> str:
        uses = counted(sum(each.uses for each in self.periods), "use")
        size = f"{counted(len(self.senses), 'sense')} in {counted(len(self.periods), 'period')}"
        return summary(f"SensesOverTime of {self.word}", size, uses)

    def _repr_html_(self) -> str:
        return html_table(repr(self), [*self.rows()], self.columns)


@dataclass(frozen=True)
class DatedSenses:
    """Uses of a word, each with its sense, its document and when it was written."""

    word: str
    column: str
    """The metadata that tell when."""
    senses: Sequence[str]
    dates: Sequence[str | None]
    documents: Sequence[str | None]

    @classmethod
    def of(cls, word: str, uses: Uses, senses: Sequence[str], column: str) -> "DatedSenses":
        """From the metadata of uses."""
        if column not in uses.columns:
            names = ", ".join(uses.columns)
            raise InputError(f"There is no column {column!r}. Columns of this corpus: {names}.")
        return cls(word, column, senses, uses.metadata(column), uses.metadata(DOCUMENT))


def kept_senses_over_time(
    uses: Uses, kept: KeptSenses, column: str, num_periods: int, seed: int = 1
) -> SensesOverTime:
    """Of senses that are kept. Uses of the word that have none are left out."""
    sense_of = {
        tuple(place): name for name, places in kept.senses.items() for place in places.tolist()
    }
    names = [sense_of.get(tuple(place), "") for place in uses.places.tolist()]
    has_sense = np.flatnonzero([bool(name) for name in names])
    told = [f"Senses as they are kept, from {kept.source}."]
    if without := len(uses) - len(has_sense):
        told.append(f"Left out: {counted(without, 'use')} in none of them.")
    chosen = [names[number] for number in has_sense.tolist()]
    dated = DatedSenses.of(kept.word, uses.select(has_sense), chosen, column)
    found = senses_over_time(dated, num_periods, kept.reliability, seed=seed)
    return replace(found, notes=(*told, *found.notes))


def groups_over_time(
    senses: Senses, column: str, num_periods: int, seed: int = 1
) -> SensesOverTime:
    """Of groups that were found."""
    groups = [senses.groups[number - 1] for number in senses.labels]
    names = [f"{group.id}: {group.short_name}" for group in groups]
    trust = senses.calibration
    reliability = Reliability.of_groups(trust.ari, trust.error) if trust else None
    dated = DatedSenses.of(senses.word, senses.uses, names, column)
    found = senses_over_time(dated, num_periods, reliability, seed=seed)
    return replace(found, notes=(*senses.notes, *found.notes))


def senses_over_time(
    given: DatedSenses, num_periods: int, reliability: Reliability | None, *, seed: int = 1
) -> SensesOverTime:
    """Periods of as many years each, from the first use to the last. The same twice."""
    years = {n: year for n, date in enumerate(given.dates) if (year := _year(date)) is not None}
    if not years:
        raise InputError(
            f"None of {counted(len(given.dates), 'use')} of {given.word} has a number in "
            f"{given.column!r}, so they cannot be divided into periods."
        )
    names = sorted({given.senses[number] for number in years})
    if len(names) < 2:
        raise InputError(
            f"All dated uses of {given.word} are of one sense, {names[0]}, so its share is "
            "100 % in every period. Name and keep another sense, or compare two periods: "
            "--before, --after."
        )
    lowest, highest = min(years.values()), max(years.values())
    width = -(-(highest - lowest + 1) // num_periods)
    members: list[list[int]] = [[] for _ in range((highest - lowest) // width + 1)]
    for number, year in years.items():
        members[(year - lowest) // width].append(number)
    sides = [[given.senses[number] for number in own] for own in members]
    documents = [[given.documents[number] for number in own] for own in members]
    shares = _shares(names, sides, documents, reliability, seed)
    periods = tuple(
        Period(begin, min(begin + width - 1, highest), len(own), len({*held}), each)
        for begin, own, held, each in zip(
            range(lowest, highest + 1, width), members, documents, shares, strict=True
        )
    )
    undated = len(given.dates) - len(years)
    notes = tuple(_notes(given, undated, reliability, periods))
    return SensesOverTime(
        given.word, given.column, tuple(names), periods, undated, reliability, notes
    )


def with_texts(found: SensesOverTime, corpus: Corpus, where: Condition) -> SensesOverTime:
    """The same with the size of the texts of each period, of those that meet a condition.

    Periods are of as many years each, wherever the texts are: no use in years that have no text
    says nothing of the word.
    """
    sizes = count_words_by(corpus, [found.column], where)[found.column]
    by_year: Counter[int] = Counter()
    for value, size in sizes.items():
        if (year := _year(value)) is not None:
            by_year[year] += size
    words = (
        sum(size for year, size in by_year.items() if each.first <= year <= each.last)
        for each in found.periods
    )
    pairs = zip(found.periods, words, strict=True)
    periods = tuple(replace(each, words=size) for each, size in pairs)
    notes = list(found.notes)
    if missing := [each.label for each in periods if each.words == 0]:
        notes.append(
            f"No texts in {', '.join(missing)}: that says nothing of {found.word}. With fewer "
            "periods, each has more years."
        )
    if unused := [
        f"{each.label} ({counted(each.words, 'word')} of text)"
        for each in periods
        if each.words and not each.uses
    ]:
        notes.append(f"No use of {found.word} in {', '.join(unused)}.")
    return replace(found, periods=periods, notes=tuple(notes))


def _year(date: str | None) -> int | None:
    """Of a year, another number, or a date that begins with the year: 1850-03-12."""
    begin = re.match(r"\d{4}(?=-\d)", date or "")
    number = number_of(begin[0] if begin else date or "")
    return None if number is None else math.floor(number)


def _notes(
    given: DatedSenses, undated: int, reliability: Reliability | None, periods: Sequence[Period]
) -> Iterator[str]:
    """What a reader should know."""
    if undated:
        yield f"Left out: {counted(undated, 'use')} without a number in {given.column!r}."
    if reliability is None:
        yield "How well uses are sorted is not known: the intervals are of chance alone."
    elif reliability.value < 1:
        yield (
            f"About {reliability.value:.0%} of the uses are sorted as a person would: the "
            "intervals are wider by what the others may hide. Labels by hand make them narrower."
        )
    if few := [each.label for each in periods if 0 < each.documents < _FEW_DOCUMENTS]:
        yield (
            f"Under {_FEW_DOCUMENTS} documents in {', '.join(few)}: the intervals there tell more "
            "of these texts than of their time."
        )


def _shares(
    names: Sequence[str],
    sides: Sequence[Sequence[str]],
    documents: Sequence[Sequence[str | None]],
    reliability: Reliability | None,
    seed: int,
) -> list[tuple[Share, ...]]:
    """For each period the share of each sense."""
    present = [number for number, side in enumerate(sides) if side]
    sides_there, held = [sides[n] for n in present], [documents[n] for n in present]
    counts = [_by_document(names, *each) for each in zip(sides_there, held, strict=True)]
    random = np.random.default_rng(seed)
    drawn = np.stack([_drawn(each, random) for each in counts])  # (P, R, K)
    resampled = drawn / drawn.sum(axis=2, keepdims=True)
    observed = np.stack([each.sum(axis=0) for each in counts])  # (P, K)
    low, high = _wilson(names, sides_there, held)  # (P, K) each
    lows, highs = [low], [high]

    def add(shares: Values) -> None:
        """What these (P, R, K) leave open."""
        quantiles = np.quantile(shares, [0.025, 0.975], axis=1)
        lows.append(quantiles[0])
        highs.append(quantiles[1])

    add(resampled)
    if reliability is not None and reliability.value < 1:
        value = max(_LEAST, reliability.value)
        spread = (reliability.value - reliability.low) / _Z
        right = random.normal(reliability.value, spread, (_RESAMPLES, 1)).clip(_LEAST, 1.0)
        by_size = drawn.sum(axis=0) / drawn.sum(axis=(0, 2))[:, None]  # (R, K)
        for misplaced in (by_size, np.full_like(by_size, 1 / len(names))):
            add(_true_shares(resampled, misplaced, right))
            lows.append(_true_shares(low, misplaced.mean(axis=0), value))
            highs.append(_true_shares(high, misplaced.mean(axis=0), value))
        lows.append(value * low)
        highs.append(1 - value * (1 - high))
    lowest, highest = np.clip([np.min(lows, axis=0), np.max(highs, axis=0)], 0.0, 1.0)
    found: list[tuple[Share, ...]] = [() for _ in sides]
    for row, number in enumerate(present):
        shares = observed[row] / observed[row].sum()
        columns = observed[row].astype(int), shares, lowest[row], highest[row]
        found[number] = tuple(
            Share(*each) for each in zip(*(column.tolist() for column in columns), strict=True)
        )
    return found


def _by_document(
    names: Sequence[str], senses: Sequence[str], documents: Sequence[str | None]
) -> Values:
    """(D, K) how many uses of each sense each document has."""
    number = {name: n for n, name in enumerate(names)}
    order: dict[str | None, int] = {}
    rows = [order.setdefault(document, len(order)) for document in documents]
    found = np.zeros((len(order), len(names)))
    np.add.at(found, (rows, [number[sense] for sense in senses]), 1)
    return found


def _drawn(counts: Values, random: np.random.Generator) -> Values:
    """(R, K) the uses of each sense, with as many documents drawn again."""
    often = random.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), _RESAMPLES)
    found: Values = often @ counts
    return found


def _wilson(
    names: Sequence[str],
    sides: Sequence[Sequence[str]],
    documents: Sequence[Sequence[str | None]],
) -> tuple[Values, Values]:
    """Intervals of shares, each of as many independent uses as the documents are worth."""
    effects = [design_effect(name, sides, documents) for name in names]
    found = []
    for side, held in zip(sides, documents, strict=True):
        counts, least = Counter(side), effective_number(Counter(held).values())
        sizes = [max(len(side) / effect, least) for effect in effects]
        pairs = zip(names, sizes, strict=True)
        shares = [wilson_share(counts[name], len(side), size) for name, size in pairs]
        found.append([[share.low, share.high] for share in shares])
    low, high = np.moveaxis(np.array(found), 2, 0)
    return low, high


def _true_shares(observed: Values, misplaced: Values, right: Values | float) -> Values:
    """If this part is sorted right, and the others stand where `misplaced` says."""
    return (observed - (1 - right) * misplaced) / right
