"""Whatever a text can contain is shown as text: as words, as names, as metadata, as labels."""

import html
import random
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from polyseme.explorer.view import View

from .making import Explored, explore, make_bank_corpus

SEEDS = [
    "<script>alert(1)</script>", "</td></table><script>x()</script>", "<img src=x onerror=x()>",
    "\"><svg onload=alert(1)>", "' onmouseover='x()", "javascript:alert(1)", "{{7*7}}", "{% raw %}",
    "${7*7}", "<!--", "-->", "]]>", "<a href=javascript:x>", "&lt;b&gt;", "&amp;", "&#x3c;script",
    "\u202egnp.exe", "\u200b", "\x1b[31m", "\ufeff", "=cmd|' /C calc'!A0", "%3Cscript%3E",
    "<base href=//x>", "hx-get=/stop", "<div hx-get=/ hx-trigger=load>",
    "<style>*{display:none}</style>", "<meta http-equiv=refresh>",
]  # fmt: skip
ALLOWED_TAGS = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "svg", "circle",
    "form", "input", "button", "label", "nav", "span", "h1", "h2", "h3", "main", "div", "p",
    "section", "table", "caption", "colgroup", "col", "tbody", "thead", "tr", "td", "th", "details",
    "summary", "select", "option", "datalist", "noscript", "canvas", "aside", "progress", "dl",
    "dt", "dd", "kbd", "ul", "li", "mark", "b", "rect", "line", "ol", "small", "i", "ruby", "rt",
    "rp", "code",
}  # fmt: skip
"""All that pages are made of."""


def hostile(number: int) -> list[str]:
    """The seeds, and strings put together of their parts."""
    chance = random.Random(1)
    parts = [
        part for seed in SEEDS for part in (seed, seed[: len(seed) // 2], seed[len(seed) // 2 :])
    ]
    made = ["".join(chance.choices(parts, k=chance.randint(1, 3))) for _ in range(number)]
    return [*SEEDS, *made][:number]


class Tags(HTMLParser):
    """What a browser would take for tags, and attributes that run something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.running: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.running += [name for name in values if name.startswith("on") or name == "style"]
        if tag == "script":
            self.scripts.append(values.get("src") or "inline")
        for name in ("href", "src", "action", "hx-get", "hx-post"):
            if (value := values.get(name)) and not value.startswith(("/", "#")):
                self.running.append(value)


def look_at(page: str) -> None:
    found = Tags()
    found.feed(page)
    assert set(found.tags) <= ALLOWED_TAGS
    assert found.running == []
    assert found.scripts in ([], ["/static/htmx.min.js", "/static/explorer.js"])


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    folder = Path(tmp_path_factory.mktemp("hostile"))
    texts = hostile(1000)
    found = explore(make_bank_corpus(folder, note=texts[:84], other=texts[84:168]), folder / "n")
    found.wait_for_groups(finer=2)
    return found


def test_metadata_is_text(explored: Explored) -> None:
    for page in (1, 2):
        look_at(explored.get(f"/word?q=bank&finer=2&sort=note&page={page}"))
    for number in range(84):
        look_at(explored.get(f"/context?q=bank&use={number}"))
    look_at(explored.get("/frequency?q=bank&by=note"))
    look_at(explored.get("/frequency?q=bank&by=other"))


def test_a_thousand_hostile_words_filters_and_sentences_are_text(explored: Explored) -> None:
    texts, names = hostile(1000), ("q", "where", "before", "text", "group", "sort", "by", "lang")
    for begin in range(0, len(texts), len(names)):
        given = dict(zip(names, texts[begin : begin + len(names)], strict=True))
        look_at(explored.client.get("/compare", params=given).text)
    for text in hostile(60):
        for given in ({"q": text}, {"q": "bank", "finer": "2", "where": text}):
            answer = explored.client.get("/word", params=given)
            assert answer.status_code in (200, 400)
            look_at(answer.text)


def test_names_and_labels_are_text(explored: Explored) -> None:
    view = View(q="bank", finer=2)
    for number, text in enumerate(text for text in hostile(40) if text.strip()):
        form = {"name": text[:200], "label": text[:200]}
        explored.judge(view, action="rename", group="1", **form)
        explored.judge(view, action="label", use=[str(number)], **form)
        if number % 10 == 0:
            page = explored.get(view.address("/word"))
            look_at(page)
            assert (
                html.escape(text[:200].strip())
                .replace("&#x27;", "&#39;")
                .replace("&quot;", "&#34;")
                in page
                or not text.isprintable()
            )
    look_at(explored.get(view.address("/word", show="labels")))
    drawn = explored.get(view.address("/export/map.svg"))
    assert not re.search(r"<(?!/?(svg|title|rect|circle|text)\b)", drawn)


def test_this_notices_a_page_that_does_not_escape() -> None:
    with pytest.raises(AssertionError):
        look_at("<p><script>alert(1)</script></p>")
    with pytest.raises(AssertionError):
        look_at('<p onclick="x()">')
    with pytest.raises(AssertionError):
        look_at('<a href="javascript:x()">x</a>')
