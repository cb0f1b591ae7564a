"""Reports: pages to keep or share, one HTML file each that works offline.

    senses_page   the groups of a word's uses: an overview, a map, each group with its lines
    change_page   a word on two sides: the verdict, shares of its groups, lines of either side
    periods_page  its senses over time: a panel for each with its share and interval, and a table

Words, names and metadata come from users' files. All that is put into a template is shown as text
(control characters as escapes, then HTML escaped); the page forbids scripts and anything that is
not in it (Content-Security-Policy).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from polyseme import __version__
from polyseme.display import counted, printable
from polyseme.meanings.change.periods import SensesOverTime
from polyseme.meanings.change.sides import WordChange
from polyseme.meanings.concordance.lines import (
    line_of,
    metadata_columns,
    shortened,
    shown_value,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.meanings.groups.senses import NamedGroup, Senses
from polyseme.meanings.use_map import NUM_COLOURS, colour_of, lay_out, own_file
from polyseme.storage.files import disk_faults_explained, write_text

TYPICAL_LINES, MORE_LINES = 10, 90
"""Lines of a group, and those that can be unfolded below them."""
SIDE_LINES = 6
"""Of each side in each group of a change."""
MAX_POINTS = 2_000
"""Uses on a map: more are a sample, drawn in random order so that no group hides the others."""
_SIDE = 52  # cells on either side of a word: what fits on a page
_HOVER = 45  # cells on either side in what a point tells
_PANEL, _LEFT, _TOP, _BOTTOM = (360, 190), 40, 10, 26
"""Width and height of a panel in its own units, and what is left free for labels."""
_TICKS = 6  # labels below it
_MAP, _EDGE = 600, 18  # height and width of a map in its own units, and what is left free of it


def environment(*folders: str | Path) -> jinja2.Environment:
    """Templates in which everything is text, unless a template of ours says otherwise."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _templates() -> jinja2.Environment:
    return environment(Path(__file__).parent)


def _render(template: str, *, language: str, **values: Any) -> str:
    own_style = files(__package__).joinpath("style.css").read_text("utf-8")
    return (
        _templates()
        .get_template(template)
        .render(
            language=language,
            version=__version__,
            style=Markup(own_file("palette.css") + own_style),  # noqa: S704 - our own files
            num_colours=NUM_COLOURS,
            counted=counted,
            **values,
        )
    )


def page(title: str, body: str, *, language: str) -> str:
    """A whole document around a body that is HTML already."""
    return _render("page.html", language=language, title=title, body=Markup(body))  # noqa: S704


def write_page(path: Path, html: str) -> None:
    """To a file that is there whole or not at all."""
    with disk_faults_explained(path.parent):
        write_text(path, html)


def senses_page(
    senses: Senses, settings: Sequence[tuple[str, object]], *, language: str = "en", seed: int = 1
) -> str:
    """One HTML document. `settings`: what the reader needs to make the same page again."""
    lines = {}
    for group in senses.groups:
        chosen = senses.grouping.most_typical(group.number - 1, TYPICAL_LINES + MORE_LINES)
        found = kwic_rows(senses.uses.select(chosen))
        lines[group.id] = found[:TYPICAL_LINES], found[TYPICAL_LINES:]
    return _render(
        "senses.html",
        language=language,
        lines=lines,
        num_documents=len(set(senses.uses.metadata(DOCUMENT))),
        **_common(senses, settings, seed),
    )


def change_page(
    found: WordChange,
    sides: tuple[str, str],
    settings: Sequence[tuple[str, object]],
    *,
    language: str = "en",
    seed: int = 1,
) -> str:
    """One HTML document. `sides`: what each is called."""
    senses = found.senses
    lines = {}
    for group in senses.groups:
        ordered = senses.grouping.most_typical(group.number - 1, len(senses.uses))
        is_first = ordered < found.num_before
        lines[group.id] = [
            (name, len(own), kwic_rows(senses.uses.select(own[:SIDE_LINES])))
            for name, own in zip(sides, (ordered[is_first], ordered[~is_first]), strict=True)
        ]
    is_before = [number < found.num_before for number in range(len(senses.uses))]
    return _render(
        "change.html",
        language=language,
        found=found,
        sides=sides,
        shares={int(each.group): each for each in found.change.groups},
        lines=lines,
        **_common(senses, settings, seed, is_before),
    )


def periods_page(
    found: SensesOverTime, settings: Sequence[tuple[str, object]], *, language: str = "en"
) -> str:
    """One HTML document."""
    (width, height), num = _PANEL, len(found.periods)
    across = [round(_LEFT + (width - _LEFT) * (n + 0.5) / num, 1) for n in range(num)]
    step = -(-num // _TICKS)
    ticks = [(across[n], found.periods[n].first) for n in range(0, num, step)]
    grid = [(_height_of(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0)]
    size = {"width": width, "height": height, "left": _LEFT, "ticks": ticks, "grid": grid}
    panels = [_panel(found, number, across) for number in range(len(found.senses))]
    return _render(
        "periods.html", language=language, found=found, panels=panels, size=size, settings=settings
    )


def _height_of(share: float) -> float:
    """Where a share stands in a panel: 0 at its foot, 1 at its head."""
    return round(_TOP + (_PANEL[1] - _TOP - _BOTTOM) * (1 - share), 1)


def _panel(found: SensesOverTime, sense: int, across: Sequence[float]) -> dict[str, Any]:
    """One sense: its points; lines and bands through those of periods in a row that have uses."""
    points: list[tuple[float, float, float, float, str]] = []
    runs: list[list[tuple[float, float, float, float, str]]] = [[]]
    for x, period in zip(across, found.periods, strict=True):
        if not period.shares:
            runs.append([])
            continue
        share = period.shares[sense]
        told = f"{period.label}: {share.share:.0%} ({share.low:.0%} to {share.high:.0%})"
        heights = (_height_of(each) for each in (share.share, share.low, share.high))
        y, low, high = heights
        points.append((x, y, low, high, told))
        runs[-1].append(points[-1])
    bands = []
    for run in filter(None, runs):
        edge = [(x, high) for x, _, _, high, _ in run]
        edge += [(x, low) for x, _, low, _, _ in reversed(run)]
        bands.append(f"{_path(edge)}Z")
    return {
        "sense": found.senses[sense],
        "colour": 1 + sense % NUM_COLOURS,
        "told": f"{found.senses[sense]}. {'; '.join(told for *_, told in points)}",
        "points": points,
        "lines": [_path([(x, y) for x, y, *_ in run]) for run in runs if run],
        "bands": bands,
    }


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _common(
    senses: Senses,
    settings: Sequence[tuple[str, object]],
    seed: int,
    is_before: Sequence[bool] = (),
) -> dict[str, Any]:
    labels = [number - 1 for number in senses.labels]
    places = lay_out(senses.grouping.vectors, seed)
    return {
        "senses": senses,
        "settings": settings,
        "colours": {group.id: colour_of(group.id) for group in senses.groups},
        "map": map_points(places, labels, senses.uses, senses.groups, is_before=is_before),
        "map_size": _MAP,
        "max_points": MAX_POINTS,
    }


def kwic_rows(uses: Iterable[Use]) -> list[dict[str, str]]:
    """Lines with the word in the middle, and a few words of metadata at the right."""
    found = []
    for use in uses:
        line = shortened(line_of(use), _SIDE)
        known: Mapping[str, str | None] = {DOCUMENT: use.document, **use.metadata}
        columns = metadata_columns(list(known))
        values = [(name, known.get(name)) for name in columns]
        told = " · ".join(shown_value(name, value) for name, value in values if value)
        title = f"{told} · {use.document}"
        found.append({**line._asdict(), "known": told, "title": title})
    return found


def map_points(
    places: npt.NDArray[np.float32],
    labels: Sequence[int],
    uses: Uses,
    groups: Sequence[NamedGroup],
    *,
    is_before: Sequence[bool] = (),
) -> dict[str, Any]:
    """`points` of uses, coloured by group, each with its line; `names` of groups where they lie.

    `labels`: the index of each use's group. `is_before`: points that are drawn as rings.
    """
    order = np.random.default_rng(0).permutation(len(places))[:MAX_POINTS].tolist()
    at = (_MAP / 2 + (_MAP / 2 - _EDGE) * places * [1, -1]).round(1)
    points = [
        {
            "x": at[number, 0],
            "y": at[number, 1],
            "colour": colour_of(groups[labels[number]].id),
            "is_before": bool(is_before and is_before[number]),
            "told": f"{groups[labels[number]].id}: "
            + " ".join(shortened(line_of(uses[number]), _HOVER)),
        }
        for number in order
    ]
    middles = [
        (groups[label].id, *np.median(at[np.array(labels) == label], axis=0).tolist())
        for label in sorted(set(labels))
    ]
    return {"points": points, "names": middles, "radius": 4.5 if len(order) > 400 else 6}
