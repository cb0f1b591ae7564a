"""What a map shows of each use, wherever it is drawn: its place, its colour, its line."""

from typing import Any

import numpy.typing as npt

from polyseme.meanings.concordance.lines import line_of, shortened, shown_value
from polyseme.meanings.concordance.uses import Use
from polyseme.meanings.groups.named_groups import NamedGroup
from polyseme.printable import printable

COLOURS = (
    "#6b665e", "#2f66a9", "#a9500a", "#1f7a4d", "#a63d83", "#846400",
    "#1a7c94", "#b3392f", "#6a4fb0", "#5a6b12", "#7b5a48",
)  # fmt: skip
"""Of groups on light paper, as the explorer's style.css has them; the first is for no group."""
DARK_COLOURS = (
    "#a49d92", "#7fb0ec", "#f0a05a", "#6ccf9c", "#ea93cb", "#dcb93f",
    "#62c6de", "#f28b80", "#b5a0f2", "#b6c862", "#cfa78f",
)  # fmt: skip
"""The same on dark paper."""
NUM_COLOURS = len(COLOURS) - 1
"""More groups begin with the first again."""
SCALE = 10_000
"""Places are sent as whole numbers between 0 and this."""
_AROUND = 80  # cells on either side of a word


def colour_of(group: NamedGroup) -> int:
    """From 1. A group's id stays the same whatever is done to it, and so does its colour."""
    return 1 + (int(group.id) - 1) % NUM_COLOURS if group.id.isdecimal() else 1


def scaled(places: npt.NDArray[Any]) -> tuple[list[int], list[int]]:
    """Places between -1 and 1 as whole numbers, across and upwards."""
    found = ((places + 1) / 2 * SCALE).round().astype(int)
    return found[:, 0].tolist(), found[:, 1].tolist()


def hover_line(use: Use) -> dict[str, str]:
    """What is read by whoever points at a use: its line, and what is known of it."""
    left, form, right = shortened(line_of(use), _AROUND)
    known = [printable(shown_value(name, value)) for name, value in use.metadata.items() if value]
    return {
        "left": left,
        "form": form,
        "right": right,
        "known": " · ".join(known),
    }
