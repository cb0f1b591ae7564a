"""Pages to keep: everything in them is text, nothing is fetched or run, all groups are there."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from meanings.test_named_groups import bank_uses, encoder, senses
from polyseme.meanings import report
from polyseme.meanings.change.sides import compare_sides
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.edits import RenameEdit
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import Senses
from polyseme.meanings.report import (
    MORE_LINES,
    TYPICAL_LINES,
    change_page,
    kwic_rows,
    senses_page,
    write_page,
)

__all__ = ["encoder", "senses"]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'\x1b[31m"
VOID = {"meta", "br", "img", "link"}


class Parsed(HTMLParser):
    """What a browser would see: elements, attributes, text; and whether tags match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def classes(self, name: str) -> int:
        return sum(name in (attrs.get("class") or "").split() for _, attrs in self.elements)


def check_harmless(html: str) -> Parsed:
    parsed = Parsed(html)
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    for _, attrs in parsed.elements:
        assert not [name for name in attrs if name.startswith("on")]
        assert (attrs.get("href") or "#").startswith("#")
        assert "src" not in attrs
    assert not re.search(r"url\(|@import|https?:", html.replace("http-equiv", ""))
    policies = [a["content"] or "" for t, a in parsed.elements if t == "meta" and "http-equiv" in a]
    assert policies[0].startswith("default-src 'none'")
    assert "script-src" not in policies[0]
    assert "\x1b" not in html
    return parsed


@pytest.fixture(scope="module")
def html(senses: Senses) -> str:
    return senses_page(senses, [("seed", 1), ("model", HOSTILE)], language="en")


def test_the_page_has_every_group_with_its_words_and_lines(html: str, senses: Senses) -> None:
    parsed = check_harmless(html)
    told = " ".join(parsed.texts)
    assert parsed.classes("group") == 2
    for group in senses.groups:
        assert " · ".join(group.collocates) in told
        assert f"stability {group.stability:.2f}" in told
        assert f'id="group-{group.number}"' in html
        assert f'href="#group-{group.number}"' in html
        assert senses.uses[group.typical[0]].text.split("bank")[0].strip()[-30:] in told
    lines = min(42, TYPICAL_LINES + MORE_LINES)
    assert parsed.classes("k") == 2 * lines
    assert "not dictionary senses" in told
    assert "84 uses are few" in told


def test_lines_are_cut_between_words_and_have_their_titles() -> None:
    left, right = [f"left{n}" for n in range(60)], [f"right{n}" for n in range(60)]
    metadata = {"author": ["A. Writer"], "title": ["A Title"], "year": ["1850"], "x": ["hidden"]}
    [row] = kwic_rows(Uses.of([[*left, "bank", *right]], [(60, 61)], metadata))
    assert re.fullmatch(r"…(left\d+ )+left59", row["left"])
    assert re.fullmatch(r"right0( right\d+)+…", row["right"])
    assert len(row["left"]) <= 52
    assert row["known"] == "1850 · A Title · A. Writer"


def test_the_title_of_a_chinese_book_stands_in_its_own_marks() -> None:
    titles = ["红楼梦", "《水浒传》", "Emma"]
    uses = Uses.of([["走"]] * 3, [(0, 1)] * 3, {"title": titles, "dynasty": ["清", "明", None]})
    known = [row["known"] for row in kwic_rows(uses)]
    assert known == ["《红楼梦》 · 清", "《水浒传》 · 明", "Emma"]


def test_the_map_has_a_point_for_each_use_with_its_line(html: str, senses: Senses) -> None:
    points = [attrs for tag, attrs in Parsed(html).elements if tag == "circle"]
    assert len(points) == 84
    for point in points:
        assert 0 <= float(point["cx"] or -1) <= 600
        assert 0 <= float(point["cy"] or -1) <= 600
    colours = [point["class"] for point in points]
    assert (colours.count("g1"), colours.count("g2")) == (42, 42)
    assert html.count("<title>") == 85  # and the page's own


def test_what_users_wrote_is_text_everywhere(senses: Senses, encoder: ModelUseEncoder) -> None:
    sentences = [[HOSTILE, *words] for words in bank_uses()[0].sentences()]
    uses = Uses.of(sentences, bank_uses()[0].spans + 1, {"year": [HOSTILE] * 84})
    hostile = dataclasses.replace(senses, uses=uses)
    named = hostile.edited([RenameEdit(group=hostile.editable.ref("1"), name=HOSTILE)])
    made = senses_page(named, [(HOSTILE, HOSTILE)], language='en" onload="x')
    parsed = check_harmless(made)
    assert any("<script>" in each for each in parsed.texts)  # shown, not obeyed


def test_very_many_uses_are_drawn_as_a_sample(
    senses: Senses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MAX_POINTS", 20)
    places = np.zeros((84, 2), np.float32)
    drawn = report.map_points(places, [0] * 84, senses.uses, senses.groups)
    assert len(drawn["points"]) == 20


def test_a_page_of_two_sides_shows_lines_and_shares_of_both(encoder: ModelUseEncoder) -> None:
    uses, is_river = bank_uses()
    river = np.flatnonzero(is_river)
    money = np.flatnonzero(~np.array(is_river))
    before, after = np.concatenate([river, money[:5]]), money[5:]
    found = compare_sides(uses, (before, after), encoder)
    made = change_page(found, ("year<1900", "year>=1900"), [("seed", 1)])
    parsed = check_harmless(made)
    told = " ".join(parsed.texts)
    assert "The sides differ by more than chance explains" in told
    assert "an author's style may look like change" in told
    assert parsed.classes("period") == 2 * len(found.senses.groups)
    assert parsed.classes("before") >= 47  # a ring for each use before, and the bars
    for each in found.change.groups:
        assert f"{each.before.share:.0%} → {each.after.share:.0%}" in told


def test_a_page_is_written_whole(tmp_path: Path, html: str) -> None:
    write_page(tmp_path / "new" / "bank.html", html)
    assert (tmp_path / "new" / "bank.html").read_text(encoding="utf-8") == html
