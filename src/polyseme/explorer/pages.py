"""Search and read: the first page, a word's lines in groups, their context, how often they occur.

Lines are there at once. Groups follow: the page asks again and again how far they are, and is
replaced by one with groups when they are there.
"""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from polyseme import __version__
from polyseme.explorer.annotated_line import annotate
from polyseme.explorer.desk import Desk
from polyseme.explorer.explored_word import Fineness
from polyseme.explorer.language import PageError
from polyseme.explorer.periods import choose_column, count_periods
from polyseme.explorer.reading import Reading, check_number
from polyseme.explorer.view import MAX_TEXT, View
from polyseme.meanings.annotation.edits import undo_last
from polyseme.meanings.concordance.conditions import ConditionError, complete, joined, parse_where
from polyseme.meanings.concordance.frequencies import dispersion
from polyseme.meanings.concordance.lines import Line
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.use_map.points import hover_line, scaled
from polyseme.printable import printable
from polyseme.text.segmenters.patterns import SPACELESS


def home(request: Request) -> Response:
    """Where one begins."""
    desk = Desk.of(request)
    return desk.render(request, "home.html", desk.view(request))


def word(request: Request) -> Response:
    """A word's lines."""
    desk = Desk.of(request)
    view = desk.view(request)
    if not view.q.strip():
        return home(request)
    view, problems = desk.understood(view)
    reading = desk.reading(view)
    desk.workspace.remember(view, len(reading.word.found))
    page = _word_page(desk, request, reading, problems)
    page.status_code = 400 if problems else 200
    return page


def choices(request: Request) -> Response:
    """What may be written next in a condition."""
    desk = Desk.of(request)
    text = request.query_params.get("text", "")
    found = complete(text, desk.workspace.values) if len(text) <= MAX_TEXT else []
    return JSONResponse([{"shown": printable(each.shown), "text": each.text} for each in found])


def progress(request: Request) -> Response:
    """How far the groups are; or, in the place of the whole, the page with groups."""
    desk = Desk.of(request)
    view, problems = desk.understood(desk.view(request))
    reading = desk.reading(view, is_begun=False)
    if reading.edited is None:
        job = reading.word.job
        return desk.render(request, "progress.html", view, job=job, problems=problems)
    page = _word_page(desk, request, reading, problems)
    page.headers.update({"HX-Retarget": "#word", "HX-Reselect": "#word", "HX-Reswap": "outerHTML"})
    return page


def stop(request: Request) -> Response:
    """End the work on a word."""
    desk = Desk.of(request)
    view = desk.view(request)
    found = desk.workspace.word(view)
    found.stop()
    if found.job:
        found.job.ended.wait(timeout=10)
    return desk.render(request, "progress.html", view, job=found.job, problems={})


def context(request: Request) -> Response:
    """All of a line's sentence, what stands around it, and all that is known of it."""
    desk = Desk.of(request)
    view = desk.view(request)
    uses = desk.workspace.word(view).uses
    number = use_number(request, len(uses))
    use = uses[number]
    before, after = uses.around(number)
    begin = use.starts[use.begin]
    parts = use.text[:begin], use.form, use.text[begin + len(use.form) :]
    # Between sentences a text may have had anything: a space, unless it is written without any.
    gap = "" if SPACELESS.match(use.text[-1:]) or SPACELESS.match(use.text) else " "
    return desk.render(
        request,
        "context.html" if "hx-request" in request.headers else "context_page.html",
        view,
        number=number,
        line=Line(*map(printable, parts)),
        text=printable(use.text),
        gap=gap,
        words=annotate(uses, number, view.attribute) if view.attribute else None,
        before=gap.join(map(printable, before)),
        after=gap.join(map(printable, after)),
        facts=[(DOCUMENT, use.document), *use.metadata.items(), ("id", use.sentence_id)],
        printable=printable,
    )


def line(request: Request) -> Response:
    """A line for whoever points at its place on the map."""
    desk = Desk.of(request)
    uses = desk.workspace.word(desk.view(request)).uses
    use = uses[use_number(request, len(uses))]
    return JSONResponse(hover_line(use))


def frequency(request: Request) -> Response:
    """How often the word is used in each period."""
    desk = Desk.of(request)
    view = desk.view(request)
    where = parse_where(view.where, desk.workspace.values)
    found = desk.workspace.word(view).found
    uses = found.select(found.matching(where))
    every = desk.workspace.sizes()
    column = view.by if view.by in every else choose_column(desk.workspace.columns[1:], every)
    sizes = desk.workspace.sizes(where)
    bars = count_periods(uses, column, sizes[column])
    return desk.render(
        request,
        "frequency.html",
        view,
        bars=bars,
        most=max((bar.per_million for bar in bars), default=0) or 1,
        column=column,
        dispersion=dispersion(uses, sizes[DOCUMENT]) if len(uses) else None,
    )


def map_places(request: Request) -> Response:
    """Where each use is on the map, its colour, and which are chosen."""
    desk = Desk.of(request)
    reading = desk.reading(desk.view(request), is_begun=False)
    view = reading.view
    how = Fineness(view.finer, view.layer)
    places = reading.word.places(how)
    if places is None or reading.edited is None:
        jobs = (reading.word.job, reading.word.drawing(how))
        is_open = any(job and job.is_open for job in jobs)
        return JSONResponse({"state": "waiting" if is_open else "none"})
    x, y = scaled(places)
    colours = [reading.band_of[number].colour for number in range(len(x))]
    return JSONResponse(
        {
            "state": "done",
            "x": x,
            "y": y,
            "colour": colours,
            "lit": reading.lit.tolist() if reading.is_filtered else None,
            "marked": view.like,
        }
    )


def use_number(request: Request, of: int) -> int:
    """The number of the use that an address names."""
    text = request.query_params.get("use", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PageError("no_such_use", n=of)
    check_number(int(text), of)
    return int(text)


def _word_page(
    desk: Desk,
    request: Request,
    reading: Reading,
    problems: Mapping[str, ConditionError],
) -> Response:
    view = reading.view
    log = desk.workspace.edits(view) if reading.edited else None
    undo = undo_last(log.edits) if log else None
    return desk.render(
        request,
        "word.html",
        view,
        problems=problems,
        reading=reading,
        job=reading.word.job,
        columns=desk.workspace.columns,
        attributes=desk.workspace.corpus.config.word_attributes,
        num_layers=desk.num_layers if reading.edited else 0,
        undo=log.edits[undo.edit - 1] if log and undo else None,
        log=log,
        citation=_citation(desk, request, view, reading),
    )


def _citation(desk: Desk, request: Request, view: View, reading: Reading) -> str:
    return desk.say(request, view)(
        "citation",
        word=f"{view.q} ({joined(view.where)})" if view.where else view.q,
        corpus=desk.workspace.name,
        n=len(reading.chosen),
        groups=len(reading.shown_bands),
        model=desk.workspace.model_name,
        version=__version__,
    )
