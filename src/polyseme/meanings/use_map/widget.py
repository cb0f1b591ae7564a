"""The map of uses in a notebook, with a selection that both the map and Python read and set.

    widget = polyseme.senses("corpus/en", "play", model="models/en-mini").map()
    widget                      # the map: a lasso or a group's name chooses uses
    widget.selected             # the uses that were chosen
    widget.selection = [3, 14]  # or choose them here, by their numbers in `senses.uses`

Needs the extra `notebook`; imported when a map is asked for. All that is drawn is sent to the page
with the widget: it asks no server and no network for anything.
"""

import operator
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from polyseme.display import describe_groups, summary
from polyseme.errors import InputError
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.groups.layout import lay_out
from polyseme.meanings.groups.named_groups import Senses
from polyseme.meanings.use_map.points import (
    COLOURS,
    DARK_COLOURS,
    colour_of,
    hover_line,
    scaled,
)
from polyseme.printable import printable


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


class UseMapWidget(anywidget.AnyWidget):
    """The uses of a word as points. `selection` has the numbers of those that are chosen."""

    # One module of two files: what a notebook loads cannot import a file beside it.
    _esm = _own("map.js") + "\n" + _own("widget.js")
    _css = _own("widget.css")

    points: Any = traitlets.Dict(read_only=True).tag(sync=True)
    """`x`, `y` and the number of the `group` of each use, from 0."""
    lines: Any = traitlets.List(read_only=True).tag(sync=True)
    """What is read by whoever points at a use."""
    groups: Any = traitlets.List(read_only=True).tag(sync=True)
    """Name, size and colour of each group."""
    colours: Any = traitlets.Dict(read_only=True).tag(sync=True)
    """On `light` and on `dark` paper."""
    selection: Any = traitlets.Any().tag(sync=True)
    """Numbers of the uses that are chosen, in order; empty: none is, and all keep their colour."""

    def __init__(self, senses: Senses, *, seed: int = 1) -> None:
        self.senses = senses
        x, y = scaled(lay_out(senses.grouping.vectors, seed))
        group = [number - 1 for number in senses.labels]
        self.set_trait("points", {"x": x, "y": y, "group": group})
        self.set_trait("lines", [hover_line(use) for use in senses.uses])
        self.set_trait("groups", [
            {"name": printable(group.name), "size": group.size, "colour": colour_of(group)}
            for group in senses.groups
        ])  # fmt: skip
        self.set_trait("colours", {"light": COLOURS, "dark": DARK_COLOURS})
        super().__init__()

    def __repr__(self) -> str:
        size = describe_groups(len(self.senses.uses), len(self.senses.groups))
        return summary("UseMapWidget", size, f"{len(self.selection):,} selected")

    @property
    def selected(self) -> Uses:
        """The uses that are chosen."""
        return self.senses.uses.select(self.selection)

    @traitlets.default("selection")
    def _none(self) -> list[int]:
        return []

    @traitlets.validate("selection")
    def _in_order(self, proposal: dict[str, Any]) -> list[int]:
        """Numbers of uses there are, each once; whatever is a sequence of whole numbers will do."""
        number = len(self.senses.uses)
        try:
            chosen = sorted({operator.index(each) for each in proposal["value"]})
        except TypeError as error:
            raise InputError(
                "A selection is a list of numbers of uses, such as [0, 5], not "
                f"{printable(repr(proposal['value'])[:80])}."
            ) from error
        if chosen and not 0 <= chosen[0] <= chosen[-1] < number:
            wrong = chosen[0] if chosen[0] < 0 else chosen[-1]
            raise InputError(f"There is no use {wrong}: there are {number:,}, counted from 0.")
        return chosen
