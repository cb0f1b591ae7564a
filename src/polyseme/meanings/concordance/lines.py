"""Uses in; concordance lines, and how often and how evenly they occur, out.

    `Line`       the keyword in context (KWIC), of a width or cut between words
    `Frequency`  uses with each value of a column, and per million of its words
    `Bar`        the same as bars: numbers such as years by tens, fifties, ... where there are many

Widths are those of a terminal, where a Chinese character takes two cells. Words are counted in the
sentences that meet the same conditions as the uses, so that a share is one of what was searched.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size

from polyseme.display import printable
from polyseme.errors import ConfigError
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    Condition,
    columns_of,
    number_of,
    quoted,
    rows_meeting,
)
from polyseme.meanings.concordance.search import (
    ShardGroups,
    all_groups,
    in_threads,
    read_groups,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.text.corpus import Corpus, damage_explained
from polyseme.text.segmenters.patterns import SPACELESS

_CUT = "…"
_NARROWEST = 24
_LONGEST_WORD = 30  # characters; what has no space for longer is cut anywhere


class Line(NamedTuple):
    """A use with what stands around it; all lines of a concordance are equally wide."""

    left: str
    keyword: str
    right: str


def sort_uses(uses: Uses, by: str) -> Uses:
    """Sorted by what stands `left` or `right`, or by a column; equal ones as in the corpus."""
    return uses.select(sort_order(uses, by))


def sort_order(uses: Uses, by: str) -> list[int]:
    """The numbers of the uses as `sort_uses` puts them.

    Left: by the word before the use, then by the one before that, and so on, as concordancers do.
    """
    if by in ("left", "right"):
        spans, sentences = uses.spans.tolist(), uses.sentences()
        side = _before if by == "left" else _after
        keys = [side(words, *span) for words, span in zip(sentences, spans, strict=True)]
        return sorted(range(len(uses)), key=keys.__getitem__)
    if by not in uses.columns:
        raise ConfigError(
            f"Cannot sort by {by!r}. Expected: left, right, or a column: {', '.join(uses.columns)}."
        )
    values = [sort_key(value) for value in uses.metadata(by)]
    return sorted(range(len(uses)), key=values.__getitem__)


def _before(words: list[str], begin: int, _end: int) -> list[str]:
    return [word.casefold() for word in reversed(words[:begin])]


def _after(words: list[str], _begin: int, end: int) -> list[str]:
    return [word.casefold() for word in words[end:]]


def sort_key(value: str | None) -> tuple[int, Any]:
    """Numbers by size, then text, then what has no value."""
    if value is None:
        return 2, ""
    number = number_of(value)
    return (1, value) if number is None else (0, number)


def sample_uses(uses: Uses, size: int, *, seed: int) -> Uses:
    """So many of them, drawn without replacement, in the order they had; all if there are fewer."""
    if size >= len(uses):
        return uses
    drawn = np.random.default_rng(seed).choice(len(uses), size, replace=False)
    return uses.select(np.sort(drawn))


def kwic_lines(uses: Uses, width: int) -> list[Line]:
    """A line for each use, `width` cells wide with a space on either side of the keyword."""
    parts = [line_of(use) for use in uses]
    width = max(width, _NARROWEST)
    keyword = min(max((cell_len(part.keyword) for part in parts), default=0), width // 2)
    left = (width - keyword - 2) // 2
    right = width - keyword - 2 - left
    return [
        Line(
            _last_cells(part.left, left),
            _first_cells(part.keyword, keyword),
            _first_cells(part.right, right),
        )
        for part in parts
    ]


def line_of(use: Use) -> Line:
    """A use with all of its sentence around it, not yet cut to a width."""
    begin = use.starts[use.begin]
    end = begin + len(use.form)
    left, right = use.text[:begin].rstrip(), use.text[end:].lstrip()
    return Line(printable(left), printable(use.form), printable(right))


def shortened(line: Line, cells: int) -> Line:
    """With so many cells at most on either side, cut between words; "…" stands for the rest."""
    left = first_words(line.left[::-1], cells)[::-1]
    return Line(left, line.keyword, first_words(line.right, cells))


def first_words(text: str, cells: int) -> str:
    """The beginning of a text, without a part of a word."""
    if cell_len(text) <= cells:
        return text
    end = cells - 1
    while cell_len(text[:end]) >= cells:
        end -= 1
    whole, space, part = text[:end].rpartition(" ")
    is_cut = not text[end].isspace() and not SPACELESS.match(text[end])
    kept = whole if is_cut and space and len(part) <= _LONGEST_WORD else text[:end]
    return kept.rstrip() + _CUT


def metadata_columns(columns: Sequence[str]) -> list[str]:
    """Which columns stand beside a line: a date, a title, then others; else the document."""
    known = [name for name in columns if name != DOCUMENT]
    first = [name for name in known if name in ("year", "date")][:1]
    first += [name for name in known if name == "title"]
    return [*first, *(name for name in known if name not in first)][:3] or [DOCUMENT]


def shown_value(column: str, value: str) -> str:
    """A value of a column as it stands beside a line: the title of a Chinese book in 《》."""
    is_chinese_title = column == "title" and SPACELESS.match(value) and value[0] != "《"
    return f"《{value}》" if is_chinese_title else value


def _first_cells(text: str, width: int) -> str:
    """The beginning of a text, exactly so many cells wide."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + _CUT, width)


def _last_cells(text: str, width: int) -> str:
    """The end of a text, exactly so many cells wide, what is missing filled up at its left."""
    if cell_len(text) > width:
        kept = text[-width:]  # a character is at least a cell, but for accents
        while cell_len(kept) >= width:
            kept = kept[1:]
        text = _CUT + kept.lstrip()
    return " " * (width - cell_len(text)) + text


Sizes = Mapping[str | None, int]
"""How many words there are with each value of a column."""


@dataclass(frozen=True)
class Frequency:
    """How often something is used where a column has one value."""

    value: str | None
    uses: int
    words: int  # all words there

    @property
    def per_million(self) -> float:
        """Uses in a million words."""
        return 1e6 * self.uses / self.words


def count_words_by(
    corpus: Corpus, columns: Sequence[str], where: Condition = EVERYTHING
) -> dict[str, Sizes]:
    """For each column, the number of words with each of its values. Reads all of the corpus."""
    totals: dict[str, Counter[str | None]] = {name: Counter() for name in columns}
    read = list({*columns, DOCUMENT, *columns_of(where)})
    work = partial(_count_part, columns, where, read)
    for counted in in_threads(work, all_groups(corpus)):
        for name, counts in counted.items():
            totals[name].update(counts)
    return dict(totals)


def _count_part(
    columns: Sequence[str], where: Condition, read: list[str], part: ShardGroups
) -> dict[str, Counter[str | None]]:
    totals: dict[str, Counter[str | None]] = {name: Counter() for name in columns}
    with damage_explained(part.path):
        for words, values in read_groups(part, read):
            lengths = np.diff(words.offsets) * rows_meeting(where, values)
            for name in columns:
                column = values[name]
                # No value, -1, is counted at 0.
                sums = np.bincount(column.codes + 1, lengths, minlength=len(column.values) + 1)
                counted = zip((None, *column.values), sums.astype(int).tolist(), strict=True)
                totals[name].update({value: count for value, count in counted if count})
    return totals


def frequencies(uses: Uses, column: str, sizes: Sizes) -> list[Frequency]:
    """Uses by the value of a column, those without any as well; numbers by size, then text."""
    counts = Counter(uses.metadata(column))
    return [Frequency(value, counts[value], sizes[value]) for value in sorted(sizes, key=sort_key)]


def dispersion(uses: Uses, sizes: Sizes) -> float:
    """Gries's DP over documents: 0 if each has its share of the uses, near 1 if one has them all.

    Half the sum over documents of |share of the uses - share of the words|: S. Th. Gries (2008),
    Dispersions and adjusted frequencies in corpora, International Journal of Corpus Linguistics
    13(4). Documents of one name count as one.
    """
    counts = Counter(uses.metadata(DOCUMENT))
    num_uses, num_words = len(uses), sum(sizes.values())
    differences = (abs(counts[name] / num_uses - size / num_words) for name, size in sizes.items())
    return sum(differences) / 2


_MOST_BARS = 16
_STEPS = [step * 10**power for power in range(9) for step in (1, 2, 5)]


@dataclass(frozen=True)
class Bar:
    """Uses with one value of a column, or with a range of values."""

    label: str
    uses: int
    words: int
    where: tuple[str, ...]  # the conditions that these uses meet

    @property
    def per_million(self) -> float:
        """Uses in a million words."""
        return 1e6 * self.uses / self.words if self.words else 0.0


def choose_column(columns: Sequence[str], sizes: dict[str, Sizes]) -> str:
    """One that says when: numbers, or dates that begin with a year; else the first there is."""
    for name in columns:
        values = [value for value in sizes[name] if value is not None]
        if len(values) > 1 and all(number_of(value) is not None for value in values):
            return name
    return next((name for name in columns if name != DOCUMENT), DOCUMENT)


def count_periods(uses: Uses, column: str, sizes: Sizes) -> list[Bar]:
    """A bar for each value, or each range of values."""
    found = frequencies(uses, column, sizes)
    numbers = [number_of(each.value or "") for each in found]
    if len(found) > _MOST_BARS and all(number is not None for number in numbers):
        return _binned(found, [number for number in numbers if number is not None], column)
    most = sorted(found, key=lambda each: -each.uses)[:_MOST_BARS]
    return [
        Bar(
            each.value or "–",
            each.uses,
            each.words,
            (f"{quoted(column)}={quoted(each.value or '')}",),
        )
        for each in found
        if each in most
    ]


def _binned(found: Sequence[Frequency], numbers: Sequence[Decimal], column: str) -> list[Bar]:
    lowest, highest = min(numbers), max(numbers)
    step = next(
        (step for step in _STEPS if highest // step - lowest // step < _MOST_BARS), _STEPS[-1]
    )
    bars: dict[int, tuple[int, int]] = {}
    for each, number in zip(found, numbers, strict=True):
        begin = int(number.to_integral_value("ROUND_FLOOR")) // step * step
        uses, words = bars.get(begin, (0, 0))
        bars[begin] = (uses + each.uses, words + each.words)
    return [
        Bar(
            f"{begin}–{begin + step - 1}" if step > 1 else str(begin),
            *bars[begin],
            (f"{quoted(column)}>={begin}", f"{quoted(column)}<{begin + step}"),
        )
        for begin in sorted(bars)
    ]
