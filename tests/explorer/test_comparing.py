"""Compare, score and export: figures as the library has them, and the lines behind them."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest

from polyseme.explorer.view import View
from polyseme.explorer.workspace import MeasuredControls
from polyseme.meanings.change.sides import Controls, Sides, TwoSides, band_of
from polyseme.meanings.concordance.conditions import parse_where

from .making import Explored, explore, make_bank_corpus

SIDES = "before=year<1900&after=year>=1900"
SIDES_TOLD = ("year<1900", "year>=1900")


def wait_for_verdict(explored: Explored, address: str) -> str:
    """The page once control words were measured, or found to be too few."""
    explored.get(address)
    for measured in explored.workspace._controls.values():
        assert measured.job is None or measured.job.ended.wait(timeout=120)
    return explored.get(address)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Explored:
    folder = Path(tmp_path_factory.mktemp("comparing"))
    found = explore(make_bank_corpus(folder), folder / "notes")
    found.wait_for_groups(finer=2)
    return found


def test_rivers_and_money_differ_as_the_library_says(explored: Explored) -> None:
    page = wait_for_verdict(explored, f"/compare?q=bank&finer=2&{SIDES}")
    word_page = explored.app.word_page(View(q="bank", finer=2))
    assert word_page.edited is not None
    two = TwoSides(
        word_page.word.uses, word_page.edited.features, (np.arange(42), np.arange(42, 84))
    )
    expected = two.measure(word_page.edited.labels)
    assert f"p = {expected.p_value:.3f}" in page
    assert f"APD {expected.apd:.3f}" in page
    assert "with whole documents shuffled" in page
    assert expected.sentence("bank")[0] == "changed_alone"
    assert "There are too few words of like frequency to compare “bank” with." in page


def test_the_verdict_is_by_control_words_and_in_bold_only_if_a_group_moved(
    explored: Explored,
) -> None:
    sides = Sides(*(parse_where(side, explored.workspace.values) for side in SIDES_TOLD))
    key = sides, band_of((42, 42))
    as_before = explored.workspace.controls(
        explored.workspace.word(View(q="bank")), sides, (42, 42)
    )
    try:
        for share, verdict in ((0.5, "changed"), (1.5, "alike")):
            found = Controls(True, {40: {f"word {n}": share for n in range(60)}})
            explored.workspace._controls[key] = MeasuredControls(None, found)
            page = explored.get(f"/compare?q=bank&finer=2&{SIDES}")
            assert ("<b>“bank” changed more than 60 of 60" in page) == (verdict == "changed")
            assert ("differ as much as those of ordinary words do" in page) == (verdict == "alike")
            in_chinese = explored.get(f"/compare?q=bank&finer=2&lang=zh&{SIDES}")
            assert ("“bank”的变化比" in in_chinese) == (verdict == "changed")
            assert ("与普通的词相当" in in_chinese) == (verdict == "alike")
    finally:
        explored.workspace._controls[key] = as_before


def test_a_sentence_is_coloured_and_its_words_have_substitutes(explored: Explored) -> None:
    page = explored.get("/score?text=He sat on the bank of the river.")
    bits = [float(value) for value in re.findall(r"<small>([\d.]+)</small>", page)]
    steps = [int(step) for step in re.findall(r'class="s(\d)" hx-get', page)]
    assert len(bits) == 9
    assert steps == [sum(value >= edge for edge in (4, 8, 12, 16)) for value in bits]
    part = explored.get("/substitutes?text=He sat on the bank of the river.&use=4")
    assert part.count("<li>") == 16
    assert "bank" in part


def test_the_table_has_every_line_its_group_and_label(explored: Explored) -> None:
    explored.judge(View(q="bank", finer=2), action="label", use=["5"], label="=cmd()")
    text = explored.get("/export/uses.csv?q=bank&finer=2")
    rows = list(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))
    assert len(rows) == 84
    assert rows[5]["label"] == "'=cmd()"  # no spreadsheet runs it
    part = explored.get("/export/uses.csv?q=bank&finer=2&where=year<1900")
    assert len(list(csv.DictReader(io.StringIO(part)))) == 42


def test_the_report_is_one_file_of_the_groups_as_they_are(explored: Explored) -> None:
    explored.judge(View(q="bank", finer=2), action="rename", group="1", name="of my own")
    report = explored.get("/export/report.html?q=bank&finer=2")
    assert "of my own" in report
    assert "84" in report
    assert not re.findall(r'(?:src|href)="(?!#)', report)


def test_the_map_is_a_drawing_of_every_use(explored: Explored) -> None:
    drawing = ElementTree.fromstring(explored.get("/export/map.svg?q=bank&finer=2"))
    circles = drawing.findall("{http://www.w3.org/2000/svg}circle")
    blocks = len(explored.app.word_page(View(q="bank", finer=2)).blocks)
    assert len(circles) == 84 + blocks
    names = [text.text or "" for text in drawing.findall("{http://www.w3.org/2000/svg}text")]
    assert len(names) == blocks  # the legend
    assert drawing.attrib["width"] == "800"


def test_lines_of_a_word_too_rare_to_be_grouped_can_be_exported(explored: Explored) -> None:
    page = explored.get("/word?q=farmer")
    links = re.findall(r'href="(/export/[^"]*)"', page)
    assert [Path(urlsplit(link).path).suffix for link in links] == [".csv", ".tsv", ".xlsx"]
    rows = list(csv.DictReader(io.StringIO(explored.get(links[0]).lstrip("\ufeff"))))
    uses = explored.workspace.word(View(q="farmer")).uses
    assert 0 < len(rows) == len(uses) < 40
    assert [row["text"] for row in rows] == [use.text for use in uses]
    assert {"year", "author"} <= rows[0].keys()
    part = explored.get("/export/lines.csv?q=farmer&where=year<1800")
    assert len(part.splitlines()) == 1


def test_the_second_sentence_of_a_text_has_substitutes_of_its_own(explored: Explored) -> None:
    """The words of all sentences are numbered one after the other."""
    first, second = "He sat on the bank of the river.", "She went to the farmer and laughed."
    alone = explored.get(f"/substitutes?text={second}&use=4")
    both = explored.get(f"/substitutes?text={first} {second}&use=13")
    assert "farmer" in alone
    assert both == alone
