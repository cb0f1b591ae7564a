"""What every page is made of: text that is only text, lines, a map, the frame around them.

Words, names and metadata come from users' files. All of them pass through `html_text`, which
escapes whatever HTML would obey and shows control characters; the page forbids scripts and anything
that is not in it (Content-Security-Policy), so a mistake here could still run nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from polyseme import __version__
from polyseme.display import html_text
from polyseme.meanings.concordance.lines import line_of, shortened, shown_value
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.storage.files import disk_faults_explained, write_text

NUM_COLOURS = 10
MAX_POINTS = 2_000
"""Uses on a map: more are a sample, drawn in random order so that no group hides the others."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SIDE = 52  # cells on either side of a word: what fits on a page
_HOVER = 45  # cells on either side in what a point tells
_MAP = 600  # height and width of a map in its own units
_EDGE = 18


def colour(number: int) -> str:
    """The class that gives a group its colour; beyond the tenth all are grey."""
    return f"g{number}" if number < NUM_COLOURS else "gx"


def page(title: str, body: Iterable[str], *, language: str) -> str:
    """A whole document."""
    style = files(__package__).joinpath("style.css").read_text("utf-8")
    return (
        f'<!doctype html>\n<html lang="{html_text(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="Polyseme {html_text(__version__)}">\n'
        f"<title>{html_text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def write_page(path: Path, html: str) -> None:
    """To a file that is there whole or not at all."""
    with disk_faults_explained(path.parent):
        write_text(path, html)


def kwic(uses: Iterable[Use], columns: Sequence[str], group: int) -> str:
    """Lines with the word in the middle, and a few words of metadata at the right."""
    rows = "".join(_line(use, columns) for use in uses)
    return f'<div class="kwic {colour(group)}">{rows}</div>'


def _line(use: Use, columns: Sequence[str]) -> str:
    line = shortened(line_of(use), _SIDE)
    known = {DOCUMENT: use.document, **use.metadata}
    told = " · ".join(shown_value(name, known[name] or "") for name in columns if known.get(name))
    return (
        f'<div><span class="l"><bdi>{html_text(line.left)}</bdi></span>'
        f'<span class="k">{html_text(line.keyword)}</span>'
        f'<span class="r"><bdi>{html_text(line.right)}</bdi></span>'
        f'<span class="m" title="{html_text(f"{told} · {use.document}")}">{html_text(told)}</span>'
        "</div>\n"
    )


def draw_map(
    places: npt.NDArray[np.float32],
    labels: Sequence[int],
    uses: Uses,
    names: Mapping[int, str],
    *,
    is_before: Sequence[bool] = (),
) -> str:
    """Points of uses, coloured by group, each with its line when pointed at; an SVG.

    `names`: what stands on the map for each group. `is_before`: points that are drawn as rings.
    """
    order = np.random.default_rng(0).permutation(len(places))[:MAX_POINTS]
    middle, factor = _MAP / 2, _MAP / 2 - _EDGE
    at = (middle + factor * places * [1, -1]).round(1)
    radius = 4.5 if len(order) > 400 else 6
    points = []
    for number in order.tolist():
        told = " ".join(shortened(line_of(uses[number]), _HOVER))
        ring = " before" if is_before and is_before[number] else ""
        x, y = at[number].tolist()
        points.append(
            f'<circle class="{colour(labels[number])}{ring}" cx="{x:g}" cy="{y:g}" r="{radius}">'
            f"<title>{html_text(names[labels[number]])}: {html_text(told)}</title></circle>"
        )
    texts = []
    for group in sorted(set(labels)):
        x, y = np.median(at[np.array(labels) == group], axis=0).tolist()
        texts.append(f'<text x="{x:g}" y="{y:g}">{html_text(names[group])}</text>')
    return (
        f'<svg viewBox="0 0 {_MAP} {_MAP}" role="img" aria-label="Map of uses">'
        f"{''.join(points)}{''.join(texts)}</svg>"
    )


def facts_table(facts: Iterable[tuple[str, object]]) -> str:
    """Names and values, one below the other."""
    rows = "".join(
        f"<tr><th>{html_text(name)}</th><td>{html_text(value)}</td></tr>" for name, value in facts
    )
    return f"<table><tbody>{rows}</tbody></table>"
