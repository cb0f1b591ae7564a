"""Uses in, lines to read out: each use in the middle, what stands left and right of it around.

    in   uses, how to sort them, how many to draw
    out  `Line`s of one width, the keyword in one column (keyword in context, KWIC)

Widths are those of a terminal, where a Chinese character takes two cells. What does not fit is cut
at the far end, and marked. Nothing here reads a text before it is shown.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size

from polyseme.errors import ConfigError
from polyseme.meanings.concordance.conditions import number_of
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.printable import printable
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
    return Line(_last_words(line.left, cells), line.keyword, first_words(line.right, cells))


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


def _last_words(text: str, cells: int) -> str:
    return first_words(text[::-1], cells)[::-1]


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
