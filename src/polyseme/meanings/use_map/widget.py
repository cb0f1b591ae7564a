"""The map of uses in a notebook, with a selection that both the map and Python read and set.

    widget = polyseme.senses("corpus/en", "play", model="models/en-mini").map()
    widget                      # the map: a lasso or a group's name chooses uses
    widget.selected             # the uses that were chosen
    widget.selection = [3, 14]  # or choose them here, by their numbers in `senses.uses`

Needs the package anywidget; imported when a map is asked for. All that is drawn is sent to the page
with the widget: it asks no server and no network for anything.
"""

import operator
from collections.abc import Sequence
from typing import Any

import anywidget
import numpy.typing as npt
import traitlets

from polyseme.display import describe_groups, printable, summary
from polyseme.errors import InputError
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.use_map import (
    colour_of,
    hover_line,
    lay_out,
    own_file,
    palette,
    scaled,
)


class UseMapWidget(anywidget.AnyWidget):
    """The uses of a word as points. `selection` has the numbers of those that are chosen."""

    # One module of two files: what a notebook loads cannot import a file beside it.
    _esm = own_file("map.js") + "\n" + own_file("widget.js")
    _css = own_file("widget.css")

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

    def __init__(
        self,
        uses: Uses,
        vectors: npt.NDArray[Any],
        labels: Sequence[int],
        groups: Sequence[tuple[str, str, int]],
        *,
        seed: int = 1,
    ) -> None:
        """`labels`: the number of each use's group, from 1. `groups`: id, name and size of each."""
        self.uses = uses
        x, y = scaled(lay_out(vectors, seed))
        self.set_trait("points", {"x": x, "y": y, "group": [number - 1 for number in labels]})
        self.set_trait("lines", [hover_line(use) for use in uses])
        self.set_trait("groups", [
            {"name": printable(name), "size": size, "colour": colour_of(id_)}
            for id_, name, size in groups
        ])  # fmt: skip
        self.set_trait("colours", dict(zip(("light", "dark"), palette(), strict=True)))
        super().__init__()

    def __repr__(self) -> str:
        size = describe_groups(len(self.uses), len(self.groups))
        return summary("UseMapWidget", size, f"{len(self.selection):,} selected")

    @property
    def selected(self) -> Uses:
        """The uses that are chosen."""
        return self.uses.select(self.selection)

    @traitlets.default("selection")
    def _none(self) -> list[int]:
        return []

    @traitlets.validate("selection")
    def _in_order(self, proposal: dict[str, Any]) -> list[int]:
        """Numbers of uses there are, each once; whatever is a sequence of whole numbers will do."""
        number = len(self.uses)
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
