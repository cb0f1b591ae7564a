"""Export: what is seen, as files. All lines with all metadata, the map as a drawing, a report."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from polyseme import __version__
from polyseme.display import html_text
from polyseme.errors import MissingExtraError
from polyseme.explorer.desk import Desk
from polyseme.explorer.explored_word import SEED, Fineness
from polyseme.explorer.language import PageError
from polyseme.explorer.reading import Reading
from polyseme.explorer.view import View
from polyseme.meanings.annotation.labelled_uses import LabelledUses
from polyseme.meanings.concordance.export import UseTable, write_uses
from polyseme.meanings.concordance.lines import first_words
from polyseme.meanings.report.page import write_page
from polyseme.meanings.report.senses_page import senses_page
from polyseme.meanings.use_map.points import COLOURS
from polyseme.printable import printable

_SIDE = 800  # of the drawing
_LEGEND = 100  # cells of a group's name below it
_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".svg": "image/svg+xml",
    ".html": "text/html",
}


def export(request: Request) -> Response:
    """A file of what a view shows."""
    desk = Desk.of(request)
    name = request.path_params["name"]
    makers: dict[str, Callable[[Desk, View, Path], None]] = {
        **{f"uses.{kind}": _write_table for kind in ("csv", "tsv", "xlsx")},
        **{f"lines.{kind}": _write_lines for kind in ("csv", "tsv", "xlsx")},
        "map.svg": _write_map,
        "report.html": _write_report,
    }
    if name not in makers:
        raise HTTPException(404)
    view = desk.view(request)
    folder = tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True)
    path = Path(folder.name) / name
    try:
        makers[name](desk, view, path)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        media_type=_TYPES.get(path.suffix),
        filename=f"{printable(view.q)[:40]}-{name}",
        background=BackgroundTask(folder.cleanup),
    )


def _write_table(desk: Desk, view: View, path: Path) -> None:
    """Every use that meets the filters, with its group and label; or with what was learned."""
    reading, edited = desk.judged(view)
    if reading.learned:
        asked = tuple(reading.sorting.next_lines) if reading.sorting else ()
        table = LabelledUses(edited.uses, reading.learned, {}, asked).table()
    else:
        labels = [edited.labels_by_hand.get(number) for number in range(len(edited.uses))]
        table = edited.table()
        table = UseTable(table.uses, {**table.first, "label": labels})
    _write(table, reading, path)


def _write_lines(desk: Desk, view: View, path: Path) -> None:
    """The same of uses that are too few to group, or not grouped yet."""
    reading = desk.reading(view, is_begun=False)
    _write(UseTable(reading.word.uses), reading, path)


def _write(table: UseTable, reading: Reading, path: Path) -> None:
    if reading.is_filtered:
        table = table.select(reading.lit)
    try:
        write_uses(table, path)
    except MissingExtraError as error:
        raise PageError("no_xlsx") from error


def _write_report(desk: Desk, view: View, path: Path) -> None:
    """The groups as the user left them, or the senses that the user taught, in one file."""
    senses = desk.judged(view)[0].senses
    assert senses is not None
    settings = [
        ("corpus", desk.workspace.name),
        ("model", desk.workspace.model_name),
        ("steps finer", view.finer),
        ("layer", "what is expected in its place" if view.layer is None else view.layer),
        ("edits", len(desk.workspace.edits(view).edits)),
        *([("groups", "learned from labels")] if view.show == "labels" else []),
        ("polyseme", __version__),
    ]
    language = desk.workspace.corpus.config.language
    write_page(path, senses_page(senses, settings, language=language, seed=SEED))


def _write_map(desk: Desk, view: View, path: Path) -> None:
    reading, _ = desk.judged(view)
    places = reading.word.places(Fineness(view.finer, view.layer))
    if places is None:
        raise PageError("no_map_yet")
    lit = set(reading.lit.tolist())
    points = []
    for number, (x, y) in enumerate((places * [1, -1] + 1) / 2 * (_SIDE - 40) + 20):
        is_lit = number in lit
        colour = COLOURS[reading.band_of[number].colour if is_lit else 0]
        opacity = "" if is_lit else ' opacity=".25"'
        points.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"{opacity}/>')
    drawn = [*_legend(reading), *points]
    height = _SIDE + 24 * len(reading.bands) + 20
    size = f'width="{_SIDE}" height="{height}" viewBox="0 0 {_SIDE} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    title = f"<title>{html_text(view.q)}</title>"
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    path.write_text("\n".join([head, title, paper, *drawn, "</svg>\n"]), encoding="utf-8")


def _legend(reading: Reading) -> list[str]:
    found = []
    for row, band in enumerate(reading.bands):
        y = _SIDE + 24 * row + 10
        name = html_text(first_words(f"{len(reading.in_band(band)):,}  {band.name}", _LEGEND))
        found += [
            f'<circle cx="24" cy="{y}" r="6" fill="{COLOURS[band.colour]}"/>',
            f'<text x="40" y="{y + 5}" font-family="sans-serif" font-size="14">{name}</text>',
        ]
    return found
