"""Every action in a real browser, wide and narrow, in both languages, also without graphics.

Chromium of Debian, driven by Playwright. Nothing waits for a time: each step waits for what it has
done. axe-core (tests/explorer/axe) looks at every view for what a screen reader would stumble on.
"""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import uvicorn
from chromium import LONG, complaints_of, launch, needs_chromium
from meanings.test_named_groups import MODEL

from polyseme.explorer.access import AccessGuard
from polyseme.explorer.server import make_app
from polyseme.explorer.view import View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.change.periods import DatedSenses, senses_over_time
from polyseme.meanings.report import periods_page
from polyseme.processes import open_port

from .making import make_bank_corpus, make_treebank_corpus

AXE = Path(__file__).parent / "axe" / "axe.min.js"
AXE_SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
pytestmark = [needs_chromium, pytest.mark.timeout(600)]


class Served(NamedTuple):
    """An explorer that listens."""

    address: str
    guard: AccessGuard


@contextmanager
def serving(workspace: Workspace) -> Iterator[Served]:
    listening = open_port(0)
    port = listening.getsockname()[1]
    app = make_app(workspace, port=port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{port}", app)
    finally:
        server.should_exit = True
        thread.join(timeout=60)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = Path(tmp_path_factory.mktemp("browser"))
    with serving(Workspace(make_bank_corpus(folder), str(MODEL), folder / "notes")) as found:
        yield found


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@dataclass
class Visit:
    """A page, and what it should not have done."""

    page: Any
    served: Served
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(LONG)
        self.complaints = complaints_of(self.page)
        self.page.context.on("request", self._on_request)

    def _on_request(self, request: Any) -> None:
        if request.url.startswith("http") and not request.url.startswith(self.served.address):
            self.elsewhere.append(request.url)

    def open(self, path: str, *selectors: str) -> None:
        """Go there, and wait for these: the page stays as it is once it has all its parts."""
        sign = "&" if "?" in path else "?"
        code = self.served.guard.new_code()
        self.page.goto(f"{self.served.address}{path}{sign}token={code}")
        for selector in selectors:
            self.wait(selector)

    def wait(self, selector: str, state: str = "visible") -> Any:
        found = self.page.wait_for_selector(selector, state=state)
        self.page.wait_for_load_state()  # until its scripts have run, clicks would be lost
        return found

    def edit(self, selector: str) -> None:
        """Press a button that makes an edit, and wait for the page that follows."""
        with self.page.expect_event("load"):
            self.page.click(selector)

    def wait_for_count(self, selector: str, count: int) -> None:
        """Not by `wait_for_function`: the pages' policy against `eval` refuses its second look."""
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_count(count, timeout=LONG)

    def look_for_barriers(self) -> None:
        """No serious or critical finding of axe-core."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [
            (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], self.page.url

    def lines(self) -> list[int]:
        return [
            int(line.get_attribute("data-use")) for line in self.page.query_selector_all(".line")
        ]


def visit(browser: Any, served: Served, width: int) -> Visit:
    size = {"width": width, "height": 900}
    return Visit(browser.new_context(viewport=size, accept_downloads=True).new_page(), served)


def close_after_refusals(visited: Visit, status: str) -> None:
    """Chromium tells the console of every page that is not 200; nothing else may be there."""
    assert all(status in complaint for complaint in visited.complaints)
    visited.complaints.clear()
    close(visited)


def close(visited: Visit) -> None:
    assert visited.complaints == []
    assert visited.elsewhere == []
    visited.page.context.close()


@pytest.fixture(
    scope="module",
    params=[(1366, "en", []), (390, "zh", ["--disable-3d-apis"])],
    ids=["wide-english", "phone-chinese-without-graphics"],
)
def walked(request: pytest.FixtureRequest, playwright: Any, served: Served) -> Iterator[Any]:
    width, language, flags = request.param
    browser = launch(playwright, *flags)
    yield lambda: visit(browser, served, width), language
    browser.close()


def test_axe_is_the_published_file() -> None:
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == AXE_SHA256


def test_a_word_is_searched_read_and_seen(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/?lang={language}")
    assert "token" not in here.page.url
    here.look_for_barriers()
    here.page.fill("#q", "bank")
    here.page.press("#q", "Enter")
    here.wait(".line")  # at once
    here.wait(".block")  # when they are there, on the same page
    here.wait("#map.ready")
    here.wait(".frequency")
    here.look_for_barriers()

    # Finer groups by the slider, which is in the address then.
    here.page.focus("[name=finer]")
    here.page.press("[name=finer]", "ArrowRight")
    here.page.wait_for_url(re.compile("finer=1"))
    here.page.goto(here.page.url.replace("finer=1", "finer=2"))
    here.wait(".block")  # all at once; the map may be there before them
    assert len(here.page.query_selector_all(".block")) > 1

    # The context of a line opens below it, and closes.
    word = here.wait(".line a.word")
    word.click()
    here.wait(".context .passage mark")
    here.look_for_barriers()
    word.click()
    here.wait(".context", state="detached")

    look_further(here, word, language)
    here.page.goto(f"{here.served.address}/word?q=bank&finer=2&lang={language}")
    here.wait(".block")  # from then on the page stays as it is
    here.wait("#map.ready")

    # A group by itself, sorted.
    here.page.click(".block .more a")
    here.page.wait_for_url(re.compile("group="))
    number = len(here.lines())
    here.page.select_option("[name=sort]", "right")
    here.page.wait_for_url(re.compile("sort=right"))
    assert len(here.lines()) == number
    here.page.go_back()  # every state is an address
    here.page.wait_for_url(re.compile("group=(?!.*sort=)"))
    here.page.fill("[name=where]", "year<1900")
    here.page.press("[name=where]", "Enter")
    here.page.wait_for_url(re.compile("where=year"))
    close(here)


def look_further(here: Visit, word: Any, language: str) -> None:
    """Lines like a line, the words of layer 0, and the history of searches."""
    word.click()
    here.wait(".context .links a")
    number = here.page.evaluate("document.querySelector('.context').closest('tbody').dataset.use")
    here.page.click(".context .links a")
    here.page.wait_for_url(re.compile(f"like={number}"))
    assert here.lines()[0] == int(number)
    here.page.focus("[data-layers]")
    here.page.press("[data-layers]", "Home")
    here.page.wait_for_url(re.compile("layer=0"))
    here.wait("#map.ready")
    here.open(f"/?lang={language}")
    here.page.click(".history a:text-is('bank')")
    here.page.wait_for_url(re.compile("/word"))


PAGES = (
    "/collocates", "/collocates?q=bank&finer=2", "/collocates?q=bank&finer=2&group=1",
    "/collocates?q=bank&where=century<3", "/keywords", "/keywords?before=year<1900",
    "/keywords?before=year<1900&after=year<1901", "/compare", "/compare?q=bank&finer=2",
    "/compare?q=bank&finer=2&before=year<1900&after=year<1801", "/score",
    "/score?text=the bank of the river", "/context?q=bank&use=3", "/word?q=oaks", "/nowhere",
    "/judge",
)  # fmt: skip
"""Those that no other test has looked at: lists of words, empty forms, and what is told of faults.
"""


def test_no_page_has_a_barrier(walked: Any) -> None:
    """Light where it is wide, dark on a phone."""
    begin, language = walked
    here = begin()
    here.page.emulate_media(color_scheme="dark" if language == "zh" else "light")
    here.open(f"/word?q=bank&finer=2&lang={language}", ".block", ".frequency", "#map.ready")
    here.look_for_barriers()
    width = here.page.viewport_size["width"]
    for path in PAGES:
        sign = "&" if "?" in path else "?"
        here.page.goto(f"{here.served.address}{path}{sign}lang={language}")
        here.look_for_barriers()
        assert here.page.evaluate("document.documentElement.lang").startswith(language), path
        assert here.page.evaluate("document.documentElement.scrollWidth") <= width, path
    close_after_refusals(here, " 40")


def test_reports_have_no_barrier(walked: Any) -> None:
    begin, _ = walked
    here = begin()
    senses = ["river" if n % 3 else "money" for n in range(90)]
    years = [str(1800 + n + 30 * (n >= 60)) for n in range(90)]
    dated = DatedSenses("bank", "year", senses, years, years)
    found = senses_over_time(dated, 4, None)
    html = periods_page(found, [("word", "bank")], language="en")
    for scheme in ("light", "dark"):
        here.page.emulate_media(color_scheme=scheme)
        here.page.set_content(html)
        here.look_for_barriers()
    close(here)


def test_the_map_shows_a_line_and_a_lasso_chooses(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/word?q=bank&finer=2&lang={language}", ".block", "#map.ready")
    colours = here.page.evaluate(
        """() => { const map = document.querySelector('#map').map; map.drawNow();
        const {width, height} = map.canvas, found = new Set();
        const data = map.context.getImageData(0, 0, width, height).data;
        for (let i = 0; i < data.length; i += 4) found.add(data[i] >> 5);
        return found.size; }"""
    )
    assert colours > 2  # paper, and two groups
    canvas = here.page.locator("#map canvas")
    canvas.scroll_into_view_if_needed()
    place = here.page.evaluate(
        """() => { const map = document.querySelector('#map').map;
        const {clientWidth, clientHeight} = map.canvas;
        for (let x = 0; x < clientWidth; x += 4) for (let y = 0; y < clientHeight; y += 4)
          if (map.nearest(x, y) >= 0) return [x, y]; }"""
    )
    canvas.hover(position={"x": place[0], "y": place[1]})
    here.wait(".pointed b:text-is('bank')")

    here.page.click("[data-map=lasso]")
    box = canvas.bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.5), (0.02, 0.5), (0.02, 0.03)]
    for number, (x, y) in enumerate(corners):
        here.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
        if number == 0:
            here.page.mouse.down()
    here.page.mouse.up()
    here.page.wait_for_url(re.compile("uses="))
    here.wait("#map.ready")
    lit = here.page.evaluate("[...document.querySelector('#map').map.isLit].filter(Boolean).length")
    assert 0 < lit < 84
    assert len(here.lines()) == min(lit, 50)
    here.look_for_barriers()
    close(here)


def test_a_filter_is_written_by_the_keyboard_with_choices(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/word?q=bank&finer=2&lang={language}", ".block", "#map.ready")
    field, option = here.page.locator("#where"), here.page.locator("#where-choices li")
    field.focus()
    here.wait_for_count("#where-choices li", 3)  # all columns
    here.look_for_barriers()
    here.page.keyboard.type("au")
    here.wait_for_count("#where-choices li", 1)
    for key in ("ArrowDown", "Enter"):  # author
        here.page.keyboard.press(key)
    here.wait("#where-choices li:text-is('author~')")
    here.look_for_barriers()
    here.page.keyboard.type("=")
    here.wait("#where-choices li:text-is('Money 0')")
    here.page.keyboard.type("riv")
    here.wait_for_count("#where-choices li", 10)
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowDown", "Enter"):
        here.page.keyboard.press(key)
    here.wait_for_count("#where-choices li", 0)
    assert field.input_value() == 'author="River 0"'
    assert field.get_attribute("aria-expanded") == "false"
    here.page.keyboard.type(" ")
    here.wait("#where-choices li:text-is('or')")
    here.page.keyboard.press("Escape")
    assert not option.first.is_visible()
    here.page.keyboard.type("or year~185")
    here.wait("#where-choices li:text-is('1850')")
    option.last.click()  # by the mouse, as well
    assert field.input_value() == 'author="River 0" or year~1854'
    here.page.keyboard.press("Enter")
    here.page.wait_for_url(re.compile("where=author"))
    here.wait("#map.ready")
    here.wait(".frequency")
    check_counts(here)
    close(here)


def check_counts(here: Visit) -> None:
    """What headings say is what there is to see, on this page and on those they lead to."""
    word_page = int(re.findall(r"\d+", here.page.inner_text(".summary p").replace("84", ""))[0])
    counts = [int(each.split()[0]) for each in here.page.locator(".figures").all_inner_texts()]
    assert 0 < sum(counts) == word_page < 84
    bars = here.page.locator(".bars td:last-child").all_inner_texts()
    assert sum(map(int, bars)) == word_page
    lit = here.page.evaluate("[...document.querySelector('#map').map.isLit].filter(Boolean).length")
    assert lit == word_page
    for number, count in enumerate(counts):
        here.page.locator(".block h2 a").nth(number).click()
        here.page.wait_for_url(re.compile("group="))
        assert here.page.inner_text(".figures").split()[0] == str(count) == str(len(here.lines()))
        here.page.go_back()
        here.page.wait_for_url(re.compile("where=(?!.*group=)"))
        here.wait(".block .lines")


def test_a_mistake_in_a_filter_is_told_beside_it_and_mended_there(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/word?q=bank&finer=2&lang={language}", ".block")
    here.page.fill("#where", "year<1852 and author=River")
    here.page.press("#where", "Enter")
    here.wait("#where-problem")
    told = here.page.inner_text("#where-problem")
    assert {"en": "No sentence has author=River", "zh": "没有一句的元数据是"}[language] in told
    assert 'author="River 0"' in told
    assert here.page.inner_text("#where-problem mark") == "R"
    assert here.page.input_value("#where") == "year<1852 and author=River"
    assert "where=" not in here.page.get_attribute(".block h2 a", "href")  # it is not applied
    here.look_for_barriers()
    here.page.fill("#where", "year<1852 and author~River")
    here.page.press("#where", "Enter")
    here.wait(".chip:has-text('author~River')")
    assert here.page.query_selector("#where-problem") is None

    here.page.goto(f"{here.served.address}/compare?q=bank&finer=2&lang={language}&where=author~0")
    here.page.fill("#before", "year<abc")
    here.page.fill("#after", "year>=1900")
    here.page.keyboard.press("Escape")
    here.page.click(".sides button")
    here.wait("#before-problem")
    assert here.page.query_selector("#after-problem") is None
    here.look_for_barriers()
    close_after_refusals(here, "400")


def test_groups_are_judged_compared_and_exported(walked: Any) -> None:
    begin, language = walked
    here = begin()
    start = f"/word?q=bank&finer=2&layer=2&lang={language}"  # whose log no other test writes
    here.open(start, ".block", "#map.ready")
    here.page.click(".block summary")
    here.page.fill(".block .panel [name=name]", "<i>mine</i>")
    here.edit(".block .panel [value=rename]")
    here.wait(".block h2:has-text('<i>mine</i>')")
    change_groups(here)
    sort_lines(here)
    for _ in range(8):  # four labels, what was done to groups, and the name
        here.open(start)
        here.edit(".judge [value=undo]")
        here.wait(".judge")
    assert here.page.query_selector(".judge [value=undo]") is None
    assert here.page.query_selector(".label") is None
    assert here.page.query_selector(".block h2:has-text('<i>mine</i>')") is None

    here.open(
        f"/compare?q=bank&finer=2&lang={language}&before=year<1900&after=year>1900", ".verdict"
    )
    here.look_for_barriers()
    width = here.page.viewport_size["width"]
    for movement in here.page.query_selector_all(".shares td:nth-child(5)"):
        box = movement.bounding_box()  # what became of each group is on the screen
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
    figure = here.wait(".shares td.number a")
    count = int(figure.inner_text())
    figure.click()
    here.page.wait_for_url(re.compile("where="))
    assert len(here.lines()) == min(count, 50)

    here.open(f"/word?q=bank&finer=2&lang={language}", ".block", "#map.ready")
    for link, ending, begins in EXPORTS:
        with here.page.expect_download() as download:
            here.page.click(link)
        assert download.value.suggested_filename.endswith(ending)
        assert Path(download.value.path()).read_bytes().startswith(begins)
    close(here)


EXPORTS = [
    (".export a[href*=csv]", ".csv", b'\xef\xbb\xbf"group",'),
    (".export a[href*=tsv]", ".tsv", b""),
    (".export a[href*=xlsx]", ".xlsx", b"PK\x03\x04"),
    (".export a[href*=svg]", ".svg", b"<svg "),
    (".export a[href*=report]", ".html", b"<!doctype html>"),
    ("[data-map=png]", ".png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x06\x40"),
]


def sort_lines(here: Visit) -> None:
    """As the reader does: six lines are offered, two are ticked, the others follow."""
    here.page.click(".ways a:not([aria-current])")
    here.page.wait_for_url(re.compile("show=labels"))
    here.wait_for_count(".sorting .line", 6)
    here.look_for_barriers()
    for label, place in (("one", 0), ("two", -1)):
        here.page.query_selector_all(".sorting .tick input")[place].check()
        here.page.fill(".judge [name=new_label]", label)
        here.edit(".judge [value=label]")
        here.wait(f".judge .sense:has-text('{label}')")
    here.wait_for_count(".sorting .line", 8)
    here.wait_for_count(".block", 2)
    here.look_for_barriers()
    width = here.page.viewport_size["width"]
    assert here.page.evaluate("document.documentElement.scrollWidth") <= width
    here.edit(".give button")
    # By the keyboard: the line that has the focus gets the second sense, and the next one has it.
    here.wait("#map.ready")
    here.page.focus(".sorting a.word")
    sorted_line = here.page.evaluate("document.activeElement.closest('tbody').dataset.use")
    with here.page.expect_event("load"):
        here.page.keyboard.press("2")
    here.wait("#map.ready")
    focused = "document.activeElement.closest('.sorting tbody').dataset.use"
    assert here.page.evaluate(focused) != sorted_line
    here.page.keyboard.press("n")
    assert here.page.evaluate("document.activeElement.name") == "new_label"
    assert here.page.evaluate("document.querySelectorAll('.tick input:checked').length") >= 1
    undo = here.page.inner_text(".judge [value=undo]")
    assert "two" in undo


def test_an_edit_that_is_refused_leaves_the_page_and_its_ticks(walked: Any) -> None:
    begin, language = walked
    here = begin()
    # A layer whose log no other test writes.
    here.open(f"/word?q=bank&finer=2&layer=1&lang={language}", ".block", "#map.ready")
    here.page.fill(".judge [name=name]", "mine")
    here.page.click(".judge [value=split]")
    told = here.wait("#problem .problem").inner_text()
    assert {"en": "No line is ticked", "zh": "没有勾选"}[language] in told
    assert here.page.input_value(".judge [name=name]") == "mine"
    here.look_for_barriers()
    # Another tab renames the group that this one is about to.
    other = begin()
    for tab, name in ((other, "theirs"), (here, "ours")):
        if tab is other:
            other.open(f"/word?q=bank&finer=2&layer=1&lang={language}", ".block", "#map.ready")
        tab.page.query_selector_all(".tick input")[1].check()
        tab.page.click(".block summary")
        tab.page.fill(".block .panel [name=name]", name)
        if tab is other:
            tab.edit(".block .panel [value=rename]")
    here.page.click(".block .panel [value=rename]")
    here.wait("#problem .problem a")
    assert here.page.is_checked(".block:first-of-type tbody:nth-of-type(2) .tick input")
    with here.page.expect_event("load"):
        here.page.click("#problem .problem a")
    here.wait(".block h2:has-text('theirs')")
    here.edit(".judge [value=undo]")
    for tab in (here, other):
        close(tab)


def test_ticks_are_there_again_for_who_goes_back(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/word?q=bank&finer=2&lang={language}", ".block", "#map.ready")
    boxes = here.page.query_selector_all(".tick input")
    numbers = [boxes[place].get_attribute("value") for place in (0, 2)]
    for place in (0, 1, 2, 1):  # the second is ticked, and no longer
        boxes[place].click()
    here.page.click(".block h2 a")
    here.page.wait_for_url(re.compile("group="))
    assert here.page.locator(".tick input:checked").count() == 0
    here.page.go_back()
    here.wait_for_count(".tick input:checked", 2)
    ticked = here.page.evaluate(
        "[...document.querySelectorAll('.tick input:checked')].map((box) => box.value)"
    )
    assert ticked == numbers
    assert "2" in here.page.inner_text(".judge .ticked")
    close(here)


def test_the_bar_for_edits_covers_no_line_until_one_is_ticked(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/word?q=bank&finer=2&lang={language}", ".block", "#map.ready")
    # The bar is over a line if it is what is found in the middle of it.
    covered = """() => [...document.querySelectorAll('.line a.word')].filter((word) => {
        const box = word.getBoundingClientRect();
        const found = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return found && found.closest('.judge'); }).length"""
    assert here.page.evaluate(covered) == 0
    assert here.page.evaluate("getComputedStyle(judge).position") == "static"
    here.page.click(".tick input")
    assert here.page.evaluate("getComputedStyle(judge).position") == "sticky"
    box = here.page.locator("#judge").bounding_box()
    assert box["y"] + box["height"] <= 900  # on the screen
    close(here)


def change_groups(here: Visit) -> None:
    """Two lines become a group, one more joins them, and another group takes it in: three edits."""
    number = len(here.page.query_selector_all(".block"))
    for place in (0, 1):
        here.page.query_selector_all(".tick input")[place].check()
    here.page.fill(".judge [name=name]", "split off")
    here.edit(".judge [value=split]")
    here.wait(".block h2:has-text('split off')")
    here.wait_for_count(".block", number + 1)
    new = here.page.evaluate(
        "[...document.querySelectorAll('.judge [name=to] option')]"
        ".find((option) => option.textContent === 'split off').value"
    )
    here.page.query_selector_all(".tick input")[0].check()
    here.page.select_option(".judge [name=to]", new)
    here.edit(".judge [value=move]")
    here.wait(".block:has(h2:has-text('split off')) .figures:has-text('3')")
    here.page.click(f".menu:has([name=group][value='{new}']) summary")
    here.edit(f".menu:has([name=group][value='{new}']) [value=merge]")
    here.wait_for_count(".block", number)


def test_pages_fit_the_screen_in_either_language(walked: Any) -> None:
    begin, _ = walked
    here = begin()
    width = here.page.viewport_size["width"]
    views = ["/?", "/word?q=bank&finer=2&", "/score?text=The bank.&"]
    views += ["/compare?q=bank&finer=2&before=year<1900&after=year>1900&"]
    for view in views:
        for language in ("en", "zh"):
            here.open(f"{view}lang={language}", "main")
            beyond = here.page.evaluate(
                """(width) => document.documentElement.scrollWidth <= width ? [] :
                [...document.querySelectorAll('main *, .top *')].filter(
                (part) => part.getBoundingClientRect().right > width).map(
                (part) => part.outerHTML.slice(0, 120)).slice(0, 5)""",
                width,
            )
            assert beyond == [], view
    close(here)


def test_long_work_is_cancelled_and_begun_again(playwright: Any, tmp_path: Path) -> None:
    workspace = Workspace(make_bank_corpus(tmp_path), str(MODEL), tmp_path / "notes")
    browser = launch(playwright)
    with serving(workspace) as served:
        here = visit(browser, served, 1366)
        with workspace._queue.slot():  # another word is being worked on
            here.open("/word?q=bank&lang=en")
            here.wait(".line")  # lines are there all the same
            here.wait(".progress progress")
            job = workspace.word(View(q="bank")).job
            assert job is not None
            while not job._stop.is_set():  # the page replaces its button twice a second
                here.page.click(".progress button")
                job._stop.wait(1)
            assert here.page.query_selector(".block") is None
        here.wait(".progress a.action")
        assert here.lines()
        here.page.click(".progress a.action")
        here.wait(".block")
        here.wait("#map.ready")
        close(here)
    browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_attributes_stand_under_words_and_are_chosen_by_the_keyboard(
    playwright: Any, tmp_path: Path, scheme: str
) -> None:
    workspace = Workspace(make_treebank_corpus(tmp_path), str(MODEL), tmp_path / "notes")
    browser = launch(playwright)
    with serving(workspace) as served:
        here = visit(browser, served, 1366 if scheme == "light" else 390)
        here.page.emulate_media(color_scheme=scheme)
        here.open("/word?q=bank&lang=zh", ".block", "#map.ready")
        assert here.page.query_selector("ruby") is None
        here.page.focus("[name=attribute]")
        here.page.keyboard.press("ArrowDown")
        here.page.wait_for_url(re.compile("attribute=lemma"))
        here.wait(".line ruby rt")
        here.wait("#map.ready")
        # Under its word, and centred there.
        above, below = here.page.evaluate(
            """() => { const word = document.querySelector('.line .word ruby');
            const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
            const range = document.createRange(); range.selectNode(word.firstChild);
            return [range, word.querySelector('rt')].map(
              (part) => middle(part.getBoundingClientRect())); }"""
        )
        assert abs(above[0] - below[0]) < 2
        assert below[1] - above[1] > 8
        here.look_for_barriers()
        here.page.click(".line a.word")
        assert here.wait(".context mark ruby rt").inner_text() == "BANK"
        here.look_for_barriers()
        here.page.go_back()
        here.wait(".line")
        assert here.page.query_selector(".line ruby") is None
        close(here)
    browser.close()


def test_a_sentence_is_scored(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/score?lang={language}")
    here.page.fill("textarea", "He sat on the bank of the river.")
    here.page.click(".scorer button")
    here.wait(".scored")
    here.page.click(".scored button:nth-child(5)")
    here.wait("#substitutes li")
    here.look_for_barriers()
    close(here)


def test_the_keyboard_is_enough(walked: Any) -> None:
    begin, language = walked
    here = begin()
    here.open(f"/?lang={language}")
    press = here.page.keyboard.press
    press("/")
    here.page.keyboard.type("bank")
    press("Enter")
    here.wait(".block")
    here.wait("#map.ready")
    press("j")
    press("j")
    focused = "document.activeElement.closest('tbody').dataset.use"
    assert int(here.page.evaluate(focused)) == here.lines()[1]
    press("Enter")
    here.wait(".context")
    press("x")
    assert here.page.evaluate("document.querySelectorAll('.tick input:checked').length") == 1
    judge_by_keys(here)
    here.wait("#map.ready")
    tab_to(here, "canvas")
    press("ArrowRight")
    press("ArrowRight")
    here.wait(".pointed b:text-is('bank')")
    press("Enter")
    here.page.wait_for_url(re.compile("uses="))
    assert len(here.lines()) == 1
    tab_to(here, "a[href^='/compare']")
    press("Enter")
    here.page.wait_for_url(re.compile("/compare"))
    tab_to(here, "[name=before]")
    here.page.keyboard.type("year<1900")
    press("Tab")
    here.page.keyboard.type("year>1900")
    press("Enter")
    here.wait(".shares")
    close(here)


def judge_by_keys(here: Visit) -> None:
    """Split the ticked line off, name a group, and undo both."""
    press = here.page.keyboard.press
    tab_to(here, ".judge [name=name]")
    here.page.keyboard.type("mine")
    with here.page.expect_event("load"):
        press("Enter")  # splits it off, though that is not the first button
    here.wait(".block h2:has-text('mine')")
    here.wait("#map.ready")
    tab_to(here, ".menu summary")
    press("Enter")
    press("Tab")
    here.page.keyboard.type("named by keys")
    with here.page.expect_event("load"):
        press("Enter")
    here.wait(".block h2:has-text('named by keys')")
    for undone in (".block h2:has-text('named by keys')", ".block h2:has-text('mine')"):
        here.wait("#map.ready")
        tab_to(here, ".judge [value=undo]")
        with here.page.expect_event("load"):
            press("Enter")
        here.wait(undone, state="detached")
    here.wait("#map.ready")
    assert here.page.query_selector(".judge [value=undo]") is None


def tab_to(here: Visit, selector: str) -> None:
    """Press Tab until it has the focus."""
    for _ in range(400):
        here.page.keyboard.press("Tab")
        if here.page.evaluate(f'document.activeElement.matches("{selector}")'):
            return
    raise AssertionError(f"no number of Tabs leads to {selector} on {urlsplit(here.page.url).path}")
