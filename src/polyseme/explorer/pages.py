"""The explorer's pages, each a function below the address that asks for it.

Lines of a word are there at once. Groups follow: the page asks again and again how far they are,
and is replaced by one with groups when they are there. A new page or panel is a function here, a
template, and its sentences in `languages/`. Collocates and keywords are drawn as pictures, too:
dots by strength and frequency, bars to either side.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from polyseme import __version__
from polyseme.display import printable
from polyseme.embedding.embedder import Embedder
from polyseme.errors import MissingExtraError
from polyseme.explorer.context import AppContext, PageRequest, read_form
from polyseme.explorer.explored_word import SEED, Job
from polyseme.explorer.judging import judge
from polyseme.explorer.language import PageError, told_as
from polyseme.explorer.view import MAX_TEXT
from polyseme.explorer.word_page import GroupBlock, WordPage, annotate, check_number
from polyseme.meanings.change.measure import Change, GroupShares
from polyseme.meanings.change.sides import MIN_SIDE, Rival, Sides, TwoSides
from polyseme.meanings.concordance.conditions import All, complete, joined, parse_where
from polyseme.meanings.concordance.export import write_table
from polyseme.meanings.concordance.lines import (
    Line,
    choose_column,
    count_periods,
    dispersion,
    first_words,
)
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import MarkedUse, UseTable
from polyseme.meanings.edits import undo_last
from polyseme.meanings.labels import LabelledUses
from polyseme.meanings.report import senses_page, write_page
from polyseme.meanings.settings import (
    TABLES,
    CollocateListConfig,
    WindowConfig,
    WordListConfig,
)
from polyseme.meanings.substitutes import find_substitutes
from polyseme.meanings.use_map import hover_line, palette, scaled
from polyseme.meanings.wordlists.collocates import FindsPlaces, NamedUses, collocates_of
from polyseme.meanings.wordlists.counting import Unit
from polyseme.meanings.wordlists.keywords import keywords
from polyseme.meanings.wordlists.word_list import ListedWord, WordList
from polyseme.pretraining.evaluation import score_sentences
from polyseme.text.segmenters.patterns import SPACELESS

ROUTES: list[Route] = []
"""Which address is answered by which page."""
_LISTED = 60
"""Words of a list on a page; `polyseme collocates --top` has more."""
MakePage = Callable[[PageRequest], Response]


def page(path: str, method: str = "GET") -> Callable[[MakePage], MakePage]:
    """Put the function below at an address."""

    def put(make: MakePage) -> MakePage:
        def answer(request: Request) -> Response:
            return make(PageRequest.of(request))

        ROUTES.append(Route(path, answer, methods=[method]))
        return make

    return put


async def _judge(request: Request) -> Response:
    """What a user does to groups: its form is read, then it works in a thread."""
    form = await read_form(request)
    return await run_in_threadpool(judge, request, form)


def _choices(request: Request) -> Response:
    """What may be written next in a condition; of no view, so that it may be of any length."""
    text = request.query_params.get("text", "")
    values = AppContext.of(request).workspace.values
    found = complete(text, values) if len(text) <= MAX_TEXT else []
    return JSONResponse([{"shown": printable(each.shown), "text": each.text} for each in found])


ROUTES += [Route("/judge", _judge, methods=["POST"]), Route("/choices", _choices)]


@page("/")
def home(asked: PageRequest) -> Response:
    """Where one begins."""
    return asked.render("home.html")


@page("/word")
def word(asked: PageRequest) -> Response:
    """A word's lines."""
    if not asked.view.q.strip():
        return home(asked)
    problems = asked.drop_mistakes()
    word_page = asked.word_page()
    asked.workspace.remember(asked.view, len(word_page.word.found))
    found = _render_word(asked, word_page, problems)
    found.status_code = 400 if problems else 200
    return found


@page("/progress")
def progress(asked: PageRequest) -> Response:
    """How far the groups are; or, in the place of the whole, the page with groups."""
    problems = asked.drop_mistakes()
    word_page = asked.word_page(is_begun=False)
    if word_page.edited is None:
        return asked.render("progress.html", job=word_page.word.job, problems=problems)
    found = _render_word(asked, word_page, problems)
    found.headers.update({"HX-Retarget": "#word", "HX-Reselect": "#word", "HX-Reswap": "outerHTML"})
    return found


@page("/stop", "POST")
def stop(asked: PageRequest) -> Response:
    """End the work on a word."""
    found = asked.workspace.word(asked.view)
    found.stop()
    if found.job:
        found.job.ended.wait(timeout=10)
    return asked.render("progress.html", job=found.job, problems={})


@page("/context")
def context(asked: PageRequest) -> Response:
    """All of a line's sentence, what stands around it, and all that is known of it."""
    uses = asked.workspace.word(asked.view).uses
    number = _use_number(asked, len(uses))
    use = uses[number]
    before, after = uses.around(number)
    begin = use.starts[use.begin]
    parts = use.text[:begin], use.form, use.text[begin + len(use.form) :]
    # Between sentences a text may have had anything: a space, unless it is written without any.
    gap = "" if SPACELESS.match(use.text[-1:]) or SPACELESS.match(use.text) else " "
    attribute = asked.view.attribute
    return asked.render(
        "context.html" if asked.is_part else "context_page.html",
        number=number,
        line=Line(*parts),
        text=printable(use.text),
        gap=gap,
        words=annotate(uses, number, attribute) if attribute else None,
        before=gap.join(before),
        after=gap.join(after),
        facts=[(DOCUMENT, use.document), *use.metadata.items(), ("id", use.sentence_id)],
    )


@page("/line")
def line(asked: PageRequest) -> Response:
    """A line for whoever points at its place on the map."""
    uses = asked.workspace.word(asked.view).uses
    return JSONResponse(hover_line(uses[_use_number(asked, len(uses))]))


@page("/frequency")
def frequency(asked: PageRequest) -> Response:
    """How often the word is used in each period."""
    view, workspace = asked.view, asked.workspace
    where = parse_where(view.where, workspace.values)
    found = workspace.word(view).found
    uses = found.select(found.matching(where))
    every = workspace.sizes()
    column = view.by if view.by in every else choose_column(workspace.columns[1:], every)
    sizes = workspace.sizes(where)
    bars = count_periods(uses, column, sizes[column])
    return asked.render(
        "frequency.html",
        bars=bars,
        most=max((bar.per_million for bar in bars), default=0) or 1,
        column=column,
        dispersion=dispersion(uses, sizes[DOCUMENT]) if len(uses) else None,
    )


@page("/map")
def map_places(asked: PageRequest) -> Response:
    """Where each use is on the map, its colour, and which are chosen."""
    word_page = asked.word_page(is_begun=False)
    places = word_page.places
    if places is None or word_page.edited is None:
        jobs = (word_page.word.job, word_page.word.drawing(asked.view.grouping))
        is_open = any(job and job.is_open for job in jobs)
        return JSONResponse({"state": "waiting" if is_open else "none"})
    x, y = scaled(places)
    colours = [word_page.block_of[number].colour for number in range(len(x))]
    lit = word_page.lit.tolist() if word_page.is_filtered else None
    found = {"x": x, "y": y, "colour": colours, "lit": lit, "marked": asked.view.like}
    return JSONResponse({"state": "done", **found})


def _use_number(asked: PageRequest, of: int) -> int:
    """The number of the use that an address names."""
    text = asked.parameter("use")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise PageError("no_such_use", n=of)
    check_number(int(text), of)
    return int(text)


def _render_word(asked: PageRequest, word_page: WordPage, problems: object) -> Response:
    view, workspace = word_page.view, asked.workspace
    log = workspace.edits(view) if word_page.edited else None
    undo = undo_last(log.edits) if log else None
    return asked.render(
        "word.html",
        problems=problems,
        word_page=word_page,
        job=word_page.word.job,
        columns=workspace.columns,
        attributes=workspace.corpus.config.attributes,
        num_layers=asked.app.num_layers if word_page.edited else 0,
        undo=log.edits[undo.edit - 1] if log and undo else None,
        log=log,
        table_kinds=[suffix[1:] for suffix in TABLES],
        citation=asked.say(
            "citation",
            word=f"{view.q} ({joined(view.where)})" if view.where else view.q,
            corpus=workspace.name,
            n=len(word_page.chosen),
            groups=len(word_page.shown_blocks),
            model=workspace.model_name,
            version=__version__,
        ),
    )


# Lists of words: collocates of a word or of one of its groups, keywords of a part of the corpus.


@page("/collocates")
def collocates(asked: PageRequest) -> Response:
    """The words around a word."""
    problems = asked.drop_mistakes()
    view, workspace = asked.view, asked.workspace
    word_page = asked.word_page(is_begun=False) if view.q.strip() else None
    blocks = word_page.blocks if word_page else []
    block = next((each for each in blocks if each.id == view.group), None)
    if view.group and word_page and block is None:
        raise PageError("no_group", id=view.group)
    found = None
    if word_page:
        places = word_page.word.uses.places[block.uses] if block else word_page.word.found.places
        of = NamedUses(view.q, FindsPlaces(places))
        with told_as("no_uses_there", word=view.q):
            where = parse_where(view.where, workspace.values)
            make = partial(
                collocates_of, workspace.corpus, of, WindowConfig(),
                CollocateListConfig(top=_LISTED), Unit(is_case_sensitive=view.case), where,
            )  # fmt: skip
            # By the uses themselves: edits may leave a group as large as it was.
            key = view.q, view.case, sha256(places.tobytes()).hexdigest(), where
            found = workspace.word_list(key, make)
    return asked.render(
        "collocates.html",
        status=400 if problems else 200,
        problems=problems,
        found=found,
        plot=dot_plot(found) if found is not None else None,
        blocks=blocks if len(blocks) > 1 else [],
        sense=block.group.short_name if block else "",
    )


@page("/keywords")
def keyword_list(asked: PageRequest) -> Response:
    """The words that set one part apart from another."""
    problems = asked.drop_mistakes()
    view, workspace = asked.view, asked.workspace
    found = None
    if view.before and not problems:
        config = WordListConfig(top=_LISTED // 2)
        make = partial(keywords, workspace.corpus, view.before, view.after, config)
        parts = (parse_where(side, workspace.values) for side in (view.before, view.after))
        with told_as("bad_parts"):
            found = workspace.word_list(tuple(parts), make)
    return asked.render(
        "keywords.html",
        status=400 if problems else 200,
        problems=problems,
        sides={"before": joined(view.before), "after": joined(view.after)},
        columns=workspace.columns,
        found=found,
        bars=diverging_bars(found) if found is not None else [],
    )


# Two sides of a word. Groups are those of all uses together, as the user left them, so that a group
# is the same on both sides. Every figure leads to the lines behind it. The verdict waits for
# control words, which a thread measures once for two sides.


@dataclass(frozen=True)
class Comparison:
    """Two sides of a word."""

    change: Change
    rows: list[tuple[GroupBlock, GroupShares]]  # in the order of the page
    rivals: tuple[Rival, ...]
    waits_for: Job | None
    """The work on control words, as long as it is not done; there is no verdict before."""


@page("/compare")
def compare(asked: PageRequest) -> Response:
    """Two sides of a word."""
    problems = asked.drop_mistakes()
    view = asked.view
    is_asked = bool(view.q.strip() and view.before and view.after)
    word_page = asked.word_page() if is_asked else None
    return asked.render(
        "compare.html",
        status=400 if problems else 200,
        problems=problems,
        sides={"before": joined(view.before), "after": joined(view.after)},
        word_page=word_page,
        job=word_page.word.job if word_page else None,
        compared=_compared(asked, word_page) if word_page and word_page.edited else None,
        columns=asked.workspace.columns,
    )


def _compared(asked: PageRequest, word_page: WordPage) -> Comparison:
    """How far the sides of a view are apart, of what meets its filter."""
    assert word_page.edited is not None
    view, word, workspace = asked.view, word_page.word, asked.workspace
    first, second = (parse_where(side, workspace.values) for side in (view.before, view.after))
    before, after = (word.uses.matching(All((side, word_page.where))) for side in (first, second))
    names = {"first": joined(view.before), "second": joined(view.after)}
    if both := np.intersect1d(before, after).size:
        raise PageError("sides_overlap", n=both, **names)
    if min(len(before), len(after)) < MIN_SIDE:
        counts = {"num_first": len(before), "num_second": len(after)}
        raise PageError("sides_too_small", **counts, **names, least=MIN_SIDE)
    sides = Sides(first, second, word_page.where)
    measured = workspace.controls(word, sides, (len(before), len(after)))
    chosen_by = frozenset(sides.columns)
    features = word_page.edited.features
    two = TwoSides(word.uses, features, (before, after), measured.found, chosen_by)
    blocks = (word_page.block_of.get(number) for number in range(len(word.uses)))
    change = two.measure([block.id if block else "" for block in blocks])
    shares = {each.group: each for each in change.groups}
    rows = [(block, shares[block.id]) for block in word_page.blocks if block.id in shares]
    job = measured.job if measured.job and measured.job.is_open else None
    return Comparison(change, rows, two.rivals(change), job)


# A sentence with each word coloured by how expected it was, and what could stand there.

_STEPS = (4, 8, 12, 16)  # bits of surprise at which the colour changes
_MOST_WORDS = 300
_NUM_SUBSTITUTES = 16


@page("/score")
def score(asked: PageRequest) -> Response:
    """A text that the reader wrote."""
    text = asked.view.text
    return asked.render("score.html", scored=_score(asked, text) if text.strip() else [])


def _score(asked: PageRequest, text: str) -> list[dict[str, object]]:
    """For each sentence its bits, and for each word its number, its bits and their step."""
    embedder = asked.workspace.encoder().embedder
    kinds = ("bidirectional", "causal")
    if not isinstance(embedder, Embedder) or embedder.model.config.objective.kind not in kinds:
        raise PageError("no_probability")
    found, number = [], 0
    for scored in score_sentences(embedder.model, _sentences(asked, text)):
        told = scored.as_json()
        words = []
        for word, *each in zip(
            scored.words, *(told[part]["words"] for part in scored.parts), strict=True
        ):
            bits = -sum(each) / len(each)  # the mean of both directions
            step = sum(bits >= edge for edge in _STEPS)
            words.append({"number": number, "word": word, "bits": bits, "step": step})
            number += 1
        found.append({"words": words, "total": -told["total"]})
    return found


@page("/substitutes")
def substitutes(asked: PageRequest) -> Response:
    """What the model would put in the place of one of the words."""
    sentences = _sentences(asked, asked.view.text)
    number = _use_number(asked, sum(map(len, sentences)))
    for words in sentences:
        if number < len(words):
            break
        number -= len(words)
    use = MarkedUse(tuple(words), number, number + 1)
    with told_as("no_probability"):
        found = find_substitutes(asked.workspace.encoder().embedder, use, _NUM_SUBSTITUTES)
    return asked.render("substitutes.html", word=use.form, own=found.own, found=found.words)


def _sentences(asked: PageRequest, text: str) -> Sequence[list[str]]:
    preprocessor = asked.workspace.encoder().embedder.preprocessor
    sentences = [list(sentence.words) for sentence in preprocessor(text).stored()]
    if not sentences:
        raise PageError("no_word")
    if sum(map(len, sentences)) > _MOST_WORDS:
        raise PageError("too_many_words", most=_MOST_WORDS)
    return sentences


# What is seen, as files: all lines with all metadata, the map as a drawing, a report.

_SIDE = 800  # of the drawing
_LEGEND = 100  # cells of a group's name below it


@page("/export/{name}")
def export(asked: PageRequest) -> Response:
    """A file of what a view shows."""
    name = asked.request.path_params["name"]
    if name not in _EXPORTS:
        raise HTTPException(404)
    write, media_type = _EXPORTS[name]
    folder = tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True)
    path = Path(folder.name) / name
    try:
        write(asked, path)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        media_type=media_type,
        filename=f"{printable(asked.view.q)[:40]}-{name}",
        background=BackgroundTask(folder.cleanup),
    )


def _write_uses(asked: PageRequest, path: Path) -> None:
    """Every use that meets the filters, with its group and label; or with what was learned."""
    word_page, edited = asked.judged()
    if word_page.learned:
        next_lines = tuple(word_page.sorting.next_lines) if word_page.sorting else ()
        table = LabelledUses(edited.uses, word_page.learned, {}, next_lines).table()
    else:
        labels = [edited.labels_by_hand.get(number) for number in range(len(edited.uses))]
        table = edited.table()
        table = UseTable(table.uses, {**table.first, "label": labels})
    _write(table, word_page, path)


def _write_lines(asked: PageRequest, path: Path) -> None:
    """The same of uses that are too few to group, or not grouped yet."""
    word_page = asked.word_page(is_begun=False)
    _write(UseTable(word_page.word.uses), word_page, path)


def _write(table: UseTable, word_page: WordPage, path: Path) -> None:
    if word_page.is_filtered:
        table = table.select(word_page.lit)
    try:
        write_table(table, path)
    except MissingExtraError as error:
        raise PageError("no_xlsx") from error


def _write_report(asked: PageRequest, path: Path) -> None:
    """The groups as the user left them, or the senses that the user taught, in one file."""
    view, workspace = asked.view, asked.workspace
    senses = asked.judged()[0].senses
    assert senses is not None
    settings = [
        ("corpus", workspace.name),
        ("model", workspace.model_name),
        ("steps finer", view.finer),
        ("layer", "what is expected in its place" if view.layer is None else view.layer),
        ("edits", len(workspace.edits(view).edits)),
        *([("groups", "learned from labels")] if view.show == "labels" else []),
        ("polyseme", __version__),
    ]
    language = workspace.corpus.config.language
    write_page(path, senses_page(senses, settings, language=language, seed=SEED))


def _write_map(asked: PageRequest, path: Path) -> None:
    word_page, _ = asked.judged()
    places = word_page.places
    if places is None:
        raise PageError("no_map_yet")
    lit, colours = set(word_page.lit.tolist()), palette()[0]
    points = [
        (x, y, colours[word_page.block_of[number].colour if number in lit else 0], number in lit)
        for number, (x, y) in enumerate((places * [1, -1] + 1) / 2 * (_SIDE - 40) + 20)
    ]
    groups = [
        (
            colours[block.colour],
            first_words(f"{len(word_page.uses_in(block)):,}  {block.name}", _LEGEND),
        )
        for block in word_page.blocks
    ]
    drawn = asked.render("map.svg", size=_SIDE, points=points, groups=groups)
    path.write_bytes(bytes(drawn.body))


_EXPORTS = {
    **{f"uses{suffix}": (_write_uses, media_type) for suffix, media_type in TABLES.items()},
    **{f"lines{suffix}": (_write_lines, media_type) for suffix, media_type in TABLES.items()},
    "map.svg": (_write_map, "image/svg+xml"),
    "report.html": (_write_report, "text/html"),
}


WIDTH, HEIGHT = 860, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 90, 16, 40
_CELL, _LINE = 7.4, 15  # of a word that is written beside a dot


class Dot(NamedTuple):
    """A collocate."""

    word: ListedWord
    x: float
    y: float
    radius: float
    label: str
    """The word, if there is room for it; the table has all of them."""


class Tick(NamedTuple):
    """A mark of an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class DotPlot:
    """Frequency from left to right, strength from bottom to top."""

    dots: list[Dot]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    width: int = WIDTH
    height: int = HEIGHT


def dot_plot(found: WordList) -> DotPlot:
    """Of collocates, whose words are written from the strongest down, where none is written yet."""
    if not found:
        return DotPlot([], [], [])
    counts = [math.log10(each.count) for each in found]
    strengths = [each.log_dice or 0.0 for each in found]
    least, most = min(counts), max(*counts, min(counts) + 0.3)
    weak, strong = math.floor(min(strengths)), max(math.ceil(max(strengths)), min(strengths) + 1)

    def across(value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (value - least) / (most - least)

    def up(value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * (value - weak) / (strong - weak)

    dots: list[Dot] = []
    # Left, right and middle of what is there already: all dots, then what is written.
    spots = [
        (across(count), up(strength)) for count, strength in zip(counts, strengths, strict=True)
    ]
    boxes = [(x - 4, x + 4, y) for x, y in spots]
    for each, (x, y) in zip(found, spots, strict=True):
        begin, end = x + 7, x + 12 + _CELL * cell_len(each.word)
        is_free = all(
            end < other or begin > last or abs(y - middle) > _LINE for other, last, middle in boxes
        )
        if is_free and end < WIDTH:
            boxes.append((begin, end, y))
        dots.append(Dot(each, x, y, 4.5, printable(each.word) if is_free and end < WIDTH else ""))
    rounds = [n * 10**power for power in range(10) for n in (1, 2, 5)]
    x_ticks = [
        Tick(across(math.log10(n)), f"{n:,}") for n in rounds if least <= math.log10(n) <= most
    ]
    step = max(1, round((strong - weak) / 6))
    y_ticks = [Tick(up(n), str(n)) for n in range(int(weak), int(strong) + 1, step)]
    return DotPlot(dots, x_ticks, y_ticks)


class Bar(NamedTuple):
    """A keyword: how far it reaches to its side, and its interval, in percent of the width."""

    word: ListedWord
    begin: float
    length: float
    low: float
    high: float


def diverging_bars(found: WordList) -> list[Bar]:
    """Log ratios from the middle: to the right what is more frequent here, to the left there."""
    reach = max((abs(each.log_ratio) for each in found), default=1.0) * 1.25 or 1.0

    def at(value: float) -> float:
        return min(100.0, max(0.0, 50 + 50 * value / reach))

    return [
        Bar(each, min(50.0, at(each.log_ratio)), abs(at(each.log_ratio) - 50),
            at(each.log_ratio_low), at(each.log_ratio_high))
        for each in found
    ]  # fmt: skip
