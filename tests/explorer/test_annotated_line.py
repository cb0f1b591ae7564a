"""Attributes under words: the right one under each, in lines and in their context."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyseme.errors import CorpusError
from polyseme.explorer.word_page import AnnotatedLine, AnnotatedWord, annotate
from polyseme.meanings.concordance.uses import find_uses

from .making import Explored, explore, make_bank_corpus, make_treebank_corpus
from .test_hostile_text import hostile, look_at

_RUBY = re.compile(r"<ruby>([^<]*)<rp> \(</rp><rt>([^<]*)</rt><rp>\)</rp></ruby>")


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    folder = Path(tmp_path_factory.mktemp("annotated"))
    found = explore(make_treebank_corpus(folder), folder / "notes")
    yield found
    found.workspace.close()


def test_each_word_has_its_own_attribute_in_every_line(explored: Explored) -> None:
    uses = find_uses(explored.workspace.corpus, "bank")
    for number, use in enumerate(uses):
        line = annotate(uses, number, "lemma")
        words = [*line.left, *line.form, *line.right]
        assert [each.word for each in words] == list(use.words)
        for each in words:
            assert each.value == ("" if each.word == "of" else each.word.upper())
        assert "".join(each.word + each.space for each in words) == use.text
        assert [each.word for each in line.form] == ["bank"]


def test_a_long_line_is_cut_on_both_sides_at_whole_words() -> None:
    side = tuple(AnnotatedWord(f"w{n}", "v", " ") for n in range(100))
    line = AnnotatedLine(side, (AnnotatedWord("bank", "BANK", " "),), side).cut(30)
    assert line.left[0] == line.right[-1] == AnnotatedWord("…", "", "")
    assert line.left[1:] == side[-(len(line.left) - 1) :]
    assert line.right[:-1] == side[: len(line.right) - 1]
    assert 30 <= sum(len(each.word + each.space) for each in line.right[:-1]) < 34
    short = AnnotatedLine(side[:2], side[2:3], side[3:5])
    assert short.cut(30) == short


def test_one_word_without_end_is_cut_too() -> None:
    endless = AnnotatedWord("x" * 10_000, "v", "")
    line = AnnotatedLine((endless,), (AnnotatedWord("a", "", ""),), (endless,)).cut(30)
    assert all(len(each.word) <= 30 for each in (*line.left, *line.right))


def test_the_switch_is_an_address_and_only_where_there_are_attributes(
    explored: Explored, tmp_path: Path
) -> None:
    page = explored.get("/word?q=bank")
    assert 'name="attribute"' in page
    assert "<ruby>" not in page
    page = explored.get("/word?q=bank&attribute=lemma")
    found = _RUBY.findall(page)
    assert ("bank", "BANK") in found
    assert all(word.upper() == lemma for word, lemma in found)
    assert '<option value="lemma" selected>' in page
    context = explored.get("/context?q=bank&attribute=lemma&use=0")
    assert "<mark><ruby>bank" in context
    without = explore(make_bank_corpus(tmp_path), tmp_path / "notes")
    assert 'name="attribute"' not in without.get("/word?q=bank")
    for there in (without, explored):
        answer = there.client.get("/word?q=bank&attribute=pos")
        assert answer.status_code == 400
        assert "no word attribute" in answer.text
    without.workspace.close()


def test_attributes_are_text(tmp_path: Path) -> None:
    texts = [text.replace("\t", " ") for text in hostile(300) if text.splitlines() == [text]]
    found = explore(make_treebank_corpus(tmp_path, texts), tmp_path / "notes")
    for page in (1, 2):
        look_at(found.get(f"/word?q=bank&sort=corpus&attribute=gloss&page={page}"))
    for number in range(0, 84, 7):
        look_at(found.get(f"/context?q=bank&attribute=gloss&use={number}"))
    found.workspace.close()


def test_a_corpus_whose_attribute_is_not_there_is_damaged(explored: Explored) -> None:
    uses = find_uses(explored.workspace.corpus, "bank")
    with pytest.raises(CorpusError, match="missing or damaged"):
        uses.attribute(0, "upos")
