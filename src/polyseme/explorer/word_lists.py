"""Collocates and keywords as pictures: dots by strength and frequency, bars to either side.

in   a word list (`meanings/wordlists`)
out  where each dot, its word and the ticks of both axes stand; how long each bar is
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from polyseme.display import printable
from polyseme.meanings.wordlists.word_list import ListedWord, WordList

WIDTH, HEIGHT = 860, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 90, 16, 40
_CELL, _LINE = 7.4, 15  # of a word that is written beside a dot


class Dot(NamedTuple):
    """A collocate."""

    word: ListedWord
    x: float
    y: float
    radius: float
    label: str
    """The word, if there is room for it; the table has all of them."""


class Tick(NamedTuple):
    """A mark of an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class DotPlot:
    """Frequency from left to right, strength from bottom to top."""

    dots: list[Dot]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    width: int = WIDTH
    height: int = HEIGHT


def dot_plot(found: WordList) -> DotPlot:
    """Of collocates, whose words are written from the strongest down, where none is written yet."""
    if not found:
        return DotPlot([], [], [])
    counts = [math.log10(each.count) for each in found]
    strengths = [each.log_dice or 0.0 for each in found]
    least, most = min(counts), max(*counts, min(counts) + 0.3)
    weak, strong = math.floor(min(strengths)), max(math.ceil(max(strengths)), min(strengths) + 1)

    def across(value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (value - least) / (most - least)

    def up(value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * (value - weak) / (strong - weak)

    dots: list[Dot] = []
    # Left, right and middle of what is there already: all dots, then what is written.
    spots = [
        (across(count), up(strength)) for count, strength in zip(counts, strengths, strict=True)
    ]
    boxes = [(x - 4, x + 4, y) for x, y in spots]
    for each, (x, y) in zip(found, spots, strict=True):
        begin, end = x + 7, x + 12 + _CELL * cell_len(each.word)
        is_free = all(
            end < other or begin > last or abs(y - middle) > _LINE for other, last, middle in boxes
        )
        if is_free and end < WIDTH:
            boxes.append((begin, end, y))
        dots.append(Dot(each, x, y, 4.5, printable(each.word) if is_free and end < WIDTH else ""))
    rounds = [n * 10**power for power in range(10) for n in (1, 2, 5)]
    x_ticks = [
        Tick(across(math.log10(n)), f"{n:,}") for n in rounds if least <= math.log10(n) <= most
    ]
    step = max(1, round((strong - weak) / 6))
    y_ticks = [Tick(up(n), str(n)) for n in range(int(weak), int(strong) + 1, step)]
    return DotPlot(dots, x_ticks, y_ticks)


class Bar(NamedTuple):
    """A keyword: how far it reaches to its side, and its interval, in percent of the width."""

    word: ListedWord
    begin: float
    length: float
    low: float
    high: float


def diverging_bars(found: WordList) -> list[Bar]:
    """Log ratios from the middle: to the right what is more frequent here, to the left there."""
    reach = max((abs(each.log_ratio) for each in found), default=1.0) * 1.25 or 1.0

    def at(value: float) -> float:
        return min(100.0, max(0.0, 50 + 50 * value / reach))

    return [
        Bar(each, min(50.0, at(each.log_ratio)), abs(at(each.log_ratio) - 50),
            at(each.log_ratio_low), at(each.log_ratio_high))
        for each in found
    ]  # fmt: skip
