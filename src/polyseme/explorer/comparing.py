"""Compare: two sets of a word's uses, and how much of each group is in either.

Groups are those of all uses together, as the user left them, so that a group is the same on both
sides. Every figure leads to the lines behind it. The verdict waits for control words, which a
thread measures once for two sides.
"""

from dataclasses import dataclass

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from polyseme.explorer.desk import Desk
from polyseme.explorer.jobs import Job
from polyseme.explorer.language import PageError
from polyseme.explorer.reading import Band, Reading
from polyseme.explorer.view import View
from polyseme.meanings.change.controls import Sides
from polyseme.meanings.change.measure import Change
from polyseme.meanings.change.shares import GroupShares
from polyseme.meanings.change.sides import MIN_SIDE, Rival, TwoSides
from polyseme.meanings.concordance.conditions import All, joined, parse_where
from polyseme.meanings.features.use_features import Labels


@dataclass(frozen=True)
class Compared:
    """A group on both sides."""

    band: Band
    shares: GroupShares


@dataclass(frozen=True)
class Comparison:
    """Two sides of a word."""

    change: Change
    rows: list[Compared]
    """In the order of the reading."""
    rivals: tuple[Rival, ...]
    waits_for: Job | None
    """The work on control words, as long as it is not done; there is no verdict before."""


def compare(request: Request) -> Response:
    """Two sides of a word."""
    desk = Desk.of(request)
    view, problems = desk.understood(desk.view(request))
    is_asked = bool(view.q.strip() and view.before and view.after)
    reading = desk.reading(view) if is_asked else None
    return desk.render(
        request,
        "compare.html",
        view,
        status=400 if problems else 200,
        problems=problems,
        sides={"before": joined(view.before), "after": joined(view.after)},
        reading=reading,
        job=reading.word.job if reading else None,
        compared=measure(desk, reading) if reading and reading.edited else None,
        columns=desk.workspace.columns,
    )


def measure(desk: Desk, reading: Reading) -> Comparison:
    """How far the sides of a view are apart, of what meets its filter."""
    assert reading.edited is not None
    view, word = reading.view, reading.word
    first, second = (parse_where(side, desk.workspace.values) for side in (view.before, view.after))
    before, after = (word.uses.matching(All((side, reading.where))) for side in (first, second))
    _check(view, before, after)
    sides = Sides(first, second, reading.where)
    measured = desk.workspace.controls(word, sides, (len(before), len(after)))
    two = TwoSides(
        word.uses,
        reading.edited.features,
        (before, after),
        measured.found,
        frozenset(sides.columns),
    )
    groups = [band.id if (band := reading.band_of.get(n)) else "" for n in range(len(word.uses))]
    change = two.measure(groups)
    shares = {each.group: each for each in change.groups}
    rows = [Compared(band, shares[band.id]) for band in reading.bands if band.id in shares]
    job = measured.job if measured.job and measured.job.is_open else None
    return Comparison(change, rows, two.rivals(change), job)


def _check(view: View, before: Labels, after: Labels) -> None:
    first, second = joined(view.before), joined(view.after)
    if both := np.intersect1d(before, after).size:
        raise PageError("sides_overlap", n=both, first=first, second=second)
    if min(len(before), len(after)) < MIN_SIDE:
        counts = {"num_first": len(before), "num_second": len(after)}
        raise PageError("sides_too_small", **counts, first=first, second=second, least=MIN_SIDE)
