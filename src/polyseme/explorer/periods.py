"""How often a word is used in each period, or by each author: bars that lead to their lines.

in   uses, and how many words there are with each value of a column
out  a `Bar` for each value; years and other numbers by tens, fifties, ... where there are many
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from polyseme.meanings.concordance.conditions import number_of, quoted
from polyseme.meanings.concordance.frequencies import Frequency, Sizes, frequencies
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses

_MOST_BARS = 16
_STEPS = [step * 10**power for power in range(9) for step in (1, 2, 5)]


@dataclass(frozen=True)
class Bar:
    """Uses with one value of a column, or with a range of values."""

    label: str
    uses: int
    words: int
    where: tuple[str, ...]
    """The conditions that these uses meet."""

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
        place = int(number.to_integral_value("ROUND_FLOOR")) // step * step
        uses, words = bars.get(place, (0, 0))
        bars[place] = (uses + each.uses, words + each.words)
    return [
        Bar(
            f"{place}–{place + step - 1}" if step > 1 else str(place),
            *bars[place],
            (f"{quoted(column)}>={place}", f"{quoted(column)}<{place + step}"),
        )
        for place in sorted(bars)
    ]
