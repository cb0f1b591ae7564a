"""Compare: two sets of a word's uses, and how much of each group is in either.

Groups are those of all uses together, as the user left them, so that a group is the same on both
sides. Every figure leads to the lines behind it.
"""

from dataclasses import dataclass

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from polyseme.explorer.desk import Desk
from polyseme.explorer.language import PageError
from polyseme.explorer.reading import Band, Reading
from polyseme.explorer.view import View
from polyseme.meanings.change.measure import Change, Side, measure_change
from polyseme.meanings.change.shares import GroupShares
from polyseme.meanings.change.sides import MIN_SIDE
from polyseme.meanings.concordance.conditions import All, joined, parse_where
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.features.use_features import Labels


@dataclass(frozen=True)
class Compared:
    """A group on both sides."""

    band: Band
    shares: GroupShares


def compare(request: Request) -> Response:
    """Two sides of a word."""
    desk = Desk.of(request)
    view, problems = desk.understood(desk.view(request))
    is_asked = bool(view.q.strip() and view.before and view.after)
    reading = desk.reading(view) if is_asked else None
    change = measure(desk, reading) if reading and reading.edited else None
    return desk.render(
        request,
        "compare.html",
        view,
        status=400 if problems else 200,
        problems=problems,
        sides={"before": joined(view.before), "after": joined(view.after)},
        reading=reading,
        job=reading.word.job if reading else None,
        change=change,
        rows=_rows(reading, change) if reading and change else [],
        columns=desk.workspace.columns,
    )


def measure(desk: Desk, reading: Reading) -> Change:
    """How far the sides of a view are apart, of what meets its filter."""
    assert reading.edited is not None
    view, uses = reading.view, reading.word.uses
    before, after = (
        uses.matching(All((parse_where(side, desk.workspace.values), reading.where)))
        for side in (view.before, view.after)
    )
    _check(view, before, after)
    vectors = reading.edited.grouping.vectors
    documents = uses.metadata(DOCUMENT)
    sides = [
        Side(
            vectors[numbers],
            [documents[number] for number in numbers],
            [reading.band_of[int(number)].id for number in numbers],
        )
        for numbers in (before, after)
    ]
    return measure_change(*sides)


def _check(view: View, before: Labels, after: Labels) -> None:
    first, second = joined(view.before), joined(view.after)
    if both := np.intersect1d(before, after).size:
        raise PageError("sides_overlap", n=both, first=first, second=second)
    if min(len(before), len(after)) < MIN_SIDE:
        counts = {"num_first": len(before), "num_second": len(after)}
        raise PageError("sides_too_small", **counts, first=first, second=second, least=MIN_SIDE)


def _rows(reading: Reading, change: Change) -> list[Compared]:
    """Groups in the order of the reading."""
    shares = {each.group: each for each in change.groups}
    return [Compared(band, shares[band.id]) for band in reading.bands if band.id in shares]
