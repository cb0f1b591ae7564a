"""A filter: every count on a page is of what is shown, choices are offered, mistakes are told."""

import html
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from polyseme.explorer.view import View, pack

from .making import Explored, explore, make_bank_corpus

# Four filters: one by itself, one with `or`, two together, and one that two groups share.
FILTERS = [
    ("year<1852",),
    ("year=1851 or year=1953",),
    ("year<1853", 'not author~"river 1"'),
    ('genre="a letter"',),
]


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    folder = Path(tmp_path_factory.mktemp("filters"))
    corpus = make_bank_corpus(folder, genre=["a letter", "news", "news"])
    found = explore(corpus, folder / "notes")
    found.wait_for_groups(finer=2)
    return found


def expected(explored: Explored, where: tuple[str, ...]) -> list[int]:
    """The uses that meet these filters, worked out in plain Python."""
    rules: dict[str, Callable[[Mapping[str, Any]], bool]] = {
        "year<1852": lambda use: int(use["year"]) < 1852,
        "year=1851 or year=1953": lambda use: use["year"] in ("1851", "1953"),
        "year<1853": lambda use: int(use["year"]) < 1853,
        'not author~"river 1"': lambda use: use["author"] != "River 1",
        'genre="a letter"': lambda use: use["genre"] == "a letter",
        "genre=news": lambda use: use["genre"] == "news",
    }
    uses = explored.workspace.word(View(q="bank")).uses
    met = [all(rules[text](use.metadata) for text in where) for use in uses]
    return [number for number, is_met in enumerate(met) if is_met]


def address(path: str, where: tuple[str, ...], more: str = "") -> str:
    conditions = "".join(f"&where={quote(text)}" for text in where)
    return f"{path}?q=bank&finer=2{conditions}{more}"


def lines(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'data-use="(\d+)"', page)]


def figures(page: str) -> list[tuple[int, int]]:
    """Of each block's heading, the count and the share in per cent."""
    found = re.findall(r'class="figures"><span [^>]*>([\d,]+) <span class="quiet">(\d+)%', page)
    return [(int(count), int(share)) for count, share in found]


@pytest.mark.parametrize("where", FILTERS)
def test_headings_count_what_meets_the_filter(explored: Explored, where: tuple[str, ...]) -> None:
    met = expected(explored, where)
    assert 0 < len(met) < 84
    page = explored.get(address("/word", where))
    assert f"{len(met)} of 84 uses" in page
    counted = figures(page)
    assert sum(count for count, _ in counted) == len(met)
    assert [share for _, share in counted] == [
        round(100 * count / len(met)) for count, _ in counted
    ]
    shown_groups = page.count('<section class="block')
    assert len(counted) == shown_groups
    assert ("1 group" if shown_groups == 1 else f"{shown_groups} groups") in page
    # Each heading's count is that of the lines behind it.
    groups = re.findall(r'<h2 id="block-\d+">.*?href="([^"]*)"', page, re.DOTALL)
    for (count, _), link in zip(counted, groups, strict=True):
        one = explored.get(html.unescape(link))
        assert len(lines(one)) == count
        assert figures(one)[0][0] == count
        assert set(lines(one)) <= set(met)


def test_a_choice_on_the_map_is_counted_with_the_filter(explored: Explored) -> None:
    page = explored.get(address("/word", ("year<1852",), f"&uses={pack([0, 3, 5, 80])}"))
    met = [number for number in expected(explored, ("year<1852",)) if number in (0, 3, 5, 80)]
    assert f"{len(met)} of 84 uses" in page
    assert sorted(lines(page)) == met
    assert f"These {len(met)} lines" in page


@pytest.mark.parametrize("where", FILTERS)
def test_frequencies_are_of_what_meets_the_filter(
    explored: Explored, where: tuple[str, ...]
) -> None:
    met = expected(explored, where)
    part = explored.get(address("/frequency", where, "&by=year"))
    rows = re.findall(
        r'<a href="([^"]*)">(\d+)</a>.*?class="number">([\d.]+)</td>.*?>([\d,]+)</td>',
        part,
        re.DOTALL,
    )
    assert "DP" in part
    uses = explored.workspace.word(View(q="bank")).uses
    years = [uses[number].metadata["year"] for number in met]
    words = dict.fromkeys(years, 0)
    for number in met:  # each sentence has one use, and is a document
        words[uses[number].metadata["year"]] += len(uses[number].words)
    assert {year: int(count) for _, year, _, count in rows} == {
        year: years.count(year) for year in words
    }
    for link, year, per_million, count in rows:
        assert float(per_million) == pytest.approx(1e6 * int(count) / words[year], abs=0.1)
        assert len(lines(explored.get(html.unescape(link) + "&sort=corpus"))) == int(count)


def test_comparing_takes_the_filter_along(explored: Explored) -> None:
    sides = "&before=year<1900&after=year>=1900"
    met = set(expected(explored, ("genre=news",)))
    page = explored.get(address("/compare", ("genre=news",), sides))
    found = re.findall(r'class="number"><a href="(/word\?[^"]*)">([\d,]+)</a>', page)
    assert sum(int(count) for _, count in found) == len(met)
    for link, count in found:
        word_page = lines(explored.get(html.unescape(link)))
        assert len(word_page) == int(count)
        assert set(word_page) <= met
    # The filter can be seen, and be removed.
    [without] = re.findall(r'class="chip" href="([^"]*)"', page)
    page = explored.get(html.unescape(without))
    counts = re.findall(r'class="number"><a href="/word[^"]*">([\d,]+)</a>', page)
    assert sum(map(int, counts)) == 84


def test_labels_by_hand_are_counted_as_lines_are(explored: Explored) -> None:
    met = expected(explored, ("year<1852",))
    river, money = met[:3], [50, 51]
    beyond = next(number for number in range(42) if number not in met)
    view = View(q="bank", finer=2)
    labelled = [str(number) for number in (*river, beyond)]
    explored.judge(view, action="label", label="x", use=labelled)
    explored.judge(view, action="label", label="y", use=[str(n) for n in money])
    page = explored.get(address("/word", ("year<1852",), "&show=labels"))
    assert f"{len(river)} by hand" in page
    assert "2 by hand" not in page
    assert sum(count for count, _ in figures(page)) == len(met)
    for _ in range(2):
        explored.judge(view, action="undo")


def test_exports_say_what_is_in_them(explored: Explored) -> None:
    where = ("year<1852",)
    met = expected(explored, where)
    page = explored.get(address("/word", where))
    assert f"These {len(met)} lines with groups and labels" in page
    assert f"Uses of bank (year&lt;1852) in “corpus” ({len(met)} uses" in page
    drawing = explored.get(address("/export/map.svg", where))
    legend = [int(count) for count in re.findall(r">(\d+)  ", drawing)]
    assert sum(legend) == len(met)


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "No sentence has author=River. Did you mean author="),
        ("zh", "没有一句的元数据是 author=River。 是否要写 author="),
    ],
)
def test_a_mistake_is_told_beside_the_field_in_the_language_of_the_page(
    explored: Explored, language: str, told: str
) -> None:
    where = ("year<1852", "author=River")
    answer = explored.client.get(address("/word", where, f"&lang={language}"))
    assert answer.status_code == 400
    page = html.unescape(answer.text)
    assert told in page
    assert "<code>author=<mark>R</mark>iver</code>" in page
    assert re.search(r'id="where" name="where" value="author=River"[^>]*aria-invalid="true"', page)
    # The other filter holds, and all figures and links are those of it alone.
    assert sum(count for count, _ in figures(page)) == len(expected(explored, ("year<1852",)))
    assert "where=author" not in page


def test_a_mistake_stays_told_when_the_groups_come(explored: Explored) -> None:
    answer = explored.client.get(
        address("/progress", ("year<abc",)), headers={"hx-request": "true"}
    )
    assert answer.status_code == 200  # or it would not be put into the page
    assert "abc is not a number" in answer.text


def test_mistakes_of_both_sides_are_told(explored: Explored) -> None:
    answer = explored.client.get("/compare?q=bank&finer=2&before=year<abc&after=yer>=1900")
    assert answer.status_code == 400
    page = html.unescape(answer.text)
    assert "abc is not a number" in page
    assert "Did you mean year?" in page
    assert 'value="year<abc"' in page
    assert page.count('aria-invalid="true"') == 2


def choices(explored: Explored, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(explored.get(f"/choices?text={quote(text)}"))
    return found


def test_columns_and_values_are_offered_without_a_model(tmp_path: Path) -> None:
    corpus = make_bank_corpus(tmp_path, genre=["a letter", "\x1b[2Jnews"])
    found = explore(corpus, tmp_path / "notes", model="no such model")
    assert [each["shown"] for each in choices(found, "g")] == ["genre"]
    assert choices(found, "year<1852 and genre=lett") == [
        {"shown": "a letter", "text": 'year<1852 and genre="a letter"'}
    ]
    assert choices(found, "genre=ne")[0]["shown"] == "\\x1b[2Jnews"
    assert choices(found, "x" * 3000) == []


def test_a_query_is_looked_for_and_a_mistake_in_it_is_pointed_at(explored: Explored) -> None:
    query, unknown = (quote(text) for text in ('[word="bank"%c]', '"bank" [lemma="a"]'))
    found = explored.get(f"/word?q={query}")
    assert lines(found) == lines(explored.get("/word?q=bank"))
    for language, told in (("en", "Expected a value"), ("zh", "此处应有带英文双引号的值")):
        answer = explored.client.get(f"/word?q={quote('[word=bank]')}&lang={language}")
        assert answer.status_code == 400
        assert told in answer.text
        assert "[word=<mark>b</mark>ank]" in answer.text
    answer = explored.client.get(f"/word?q={unknown}&lang=zh")
    assert "没有 lemma 属性；有：word" in answer.text
