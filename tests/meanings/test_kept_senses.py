"""Senses that a person named, kept beside a corpus, and what other commands make of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import prepared

import polyseme
from meanings.making import make_corpus
from polyseme.commands.collocates import CollocatesConfig, run
from polyseme.config import build
from polyseme.errors import InputError, PolysemeError
from polyseme.meanings.concordance.conditions import EVERYTHING
from polyseme.meanings.concordance.kept_senses import Reliability, find_senses_of, read_senses
from polyseme.meanings.concordance.search import Query
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.edits import LabelEdit, RenameEdit
from polyseme.meanings.features.use_features import UseFeatures
from polyseme.meanings.groups.calibration import adjusted_rand_index
from polyseme.meanings.groups.grouping import Grouping
from polyseme.meanings.groups.senses import Senses, keep_groups, use_ids
from polyseme.meanings.labels import keep_labels
from polyseme.meanings.vertical import encode_command, write_vertical
from polyseme.text.corpus import Corpus

TEXTS = [
    ("the river bank is green . my bank lent money .", {"year": 1850}),
    ("a bank & a <boat> by the river .", {"year": 1851}),
    ("the bank lent no money .", {"year": 1900}),
]
RIVER = [True, False, True, False]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path, TEXTS, meta=["year"])


def grouped(uses: Uses) -> Senses:
    labels = np.array([int(not each) for each in RIVER])
    vectors = np.eye(2, dtype=np.float32)[labels]
    nothing = np.empty((len(labels), 0), np.float32)
    plain = Senses(uses, Grouping(labels, (1.0, 1.0), vectors), UseFeatures(vectors, nothing, None),
                   (), len(uses))  # fmt: skip
    return plain.in_groups(plain.grouping)


def test_groups_that_were_named_are_kept_and_labels_go_before_names(corpus: Corpus) -> None:
    uses = find_uses(corpus, "bank")
    senses = grouped(uses)
    with pytest.raises(InputError, match="no use a label"):
        keep_groups(corpus, senses, Path("bank.jsonl"))
    rename = RenameEdit(group=senses.editable.ref("1"), name="river")
    keep_groups(corpus, senses.edited([rename]), Path("bank.jsonl"))
    [kept] = read_senses(corpus)
    assert (kept.word, kept.source, list(kept.senses)) == ("bank", "bank.jsonl", ["river"])
    assert kept.places("river").tolist() == uses.places[RIVER].tolist()
    label = LabelEdit(uses=(use_ids(uses)[2],), label="sand")
    keep_groups(corpus, senses.edited([rename, label]), Path("bank.jsonl"))
    kept = find_senses_of(corpus, "Bank", "sand")
    assert kept.places("sand").tolist() == uses.places[[2]].tolist()
    assert kept.places("river").tolist() == uses.places[[0]].tolist()
    for word, sense, told in [("bank", "money", "bank: river, sand"), ("oak", None, "of 'oak'")]:
        with pytest.raises(InputError, match=told):
            find_senses_of(corpus, word, sense)


def test_collocates_are_those_of_a_sense_and_between_senses(corpus: Corpus) -> None:
    uses = find_uses(corpus, "bank")
    names = ["river" if each else "money" for each in RIVER]
    keep_labels(corpus, uses, names, {"river": (2, 2), "money": (2, 1)}, Path("b.csv"))
    plain = {"min_frequency": 1, "min_g2": 0, "sort": "frequency"}
    given = {"find": {"corpus": corpus.folder}, "words": plain, "sense": "river"}
    found = run(build(CollocatesConfig, given)).found
    assert found.title == "Collocates of bank (river)"
    assert {each.word: each.count for each in found}["river"] == 1  # the other is further away
    assert "lent" not in {each.word for each in found}
    between = run(build(CollocatesConfig, {**given, "against_sense": "money"})).found
    signs = {each.word: each.log_ratio > 0 for each in between}
    assert signs["river"]
    assert not signs["lent"]


def test_senses_of_what_a_query_found_are_those_of_its_forms_too(corpus: Corpus) -> None:
    """Whoever kept senses for a query in CQL asks for them by the word; its own go first."""
    uses = find_uses(corpus, Query.of(cql='[word="(?i)bank"]'))
    names = ["river" if each else "money" for each in RIVER]
    keep_labels(corpus, uses, names, {"river": (2, 2), "money": (2, 2)}, Path("query.csv"))
    assert find_senses_of(corpus, "Bank", "river").source == "query.csv"
    given = {"find": {"corpus": corpus.folder, "word": "bank"}, "sense": "river"}
    found = run(build(CollocatesConfig, {**given, "words": {"min_frequency": 1, "min_g2": 0}}))
    assert found.found.uses == 2
    over_time = polyseme.senses_over_time(corpus, "bank", by="year", periods=2)
    assert over_time.notes[0] == "Senses as they are kept, from query.csv."
    with pytest.raises(InputError, match="of 'river'"):
        find_senses_of(corpus, "river")
    keep_labels(corpus, find_uses(corpus, "bank"), names, {"river": (2, 2)}, Path("word.csv"))
    assert find_senses_of(corpus, "bank", "river").source == "word.csv"
    assert find_senses_of(corpus, '[word="(?i)bank"]').source == "query.csv"
    with pytest.raises(InputError, match="Name one of them"):
        find_senses_of(corpus, None, "river")


def test_keywords_are_those_of_sentences_with_a_sense(corpus: Corpus) -> None:
    uses = find_uses(corpus, "bank")
    names = ["river" if each else "money" for each in RIVER]
    keep_labels(corpus, uses, names, {"river": (2, 2), "money": (2, 1)}, Path("b.csv"))
    given: dict[str, Any] = {"sense": "river", "min_frequency": 1, "min_g2": 0, "sort": "frequency"}
    found = polyseme.keywords(corpus.folder, **given)
    assert found.title == "Keywords of sentences with bank (river)"
    counts = {each.word: (each.count, each.reference) for each in found}
    assert counts == {
        "the": (2, 1), "river": (2, 0), "is": (1, 0), "green": (1, 0), "a": (2, 0),
        "<boat>": (1, 0), "by": (1, 0), "my": (0, 1), "lent": (0, 2), "money": (0, 2), "no": (0, 1),
        "bank": (0, 2),  # in other senses
    }  # fmt: skip
    early = polyseme.keywords(corpus.folder, against_sense="money", where="year<1900", **given)
    assert {each.word: each.reference for each in early}["the"] == 0
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"against": "year<1900"}, "against-sense"), ({"sense": None}, "Which part"),
        ({"sense": None, "word": "bank"}, "--sentence"), ({"sense": "sand"}, "bank: money, river"),
    ]  # fmt: skip
    for wrong, told in mistakes:
        with pytest.raises(PolysemeError, match=told):
            polyseme.keywords(corpus.folder, **{**given, **wrong})


def test_a_corpus_that_is_another_now_asks_for_its_senses_again(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, TEXTS, meta=["year"])
    uses = find_uses(corpus, "bank")
    keep_labels(corpus, uses, ["a", "b", "a", "b"], {"a": (2, 2), "b": (2, 2)}, Path("b.csv"))
    path = corpus.folder / "manifest.json"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputError, match="Keep them again"):
        read_senses(corpus)


def test_reliability_is_the_share_that_is_sorted_beyond_chance() -> None:
    """With two senses of equal size, 90 % right are 80 % that are not there by chance."""
    assert Reliability.of_labels({"a": (50, 45), "b": (50, 45)}).value == pytest.approx(0.8)
    random = np.random.default_rng(1)
    gold = np.repeat([0, 1], 50_000)
    found = np.where(random.random(100_000) < 0.6, gold, random.integers(2, size=100_000))
    ari = adjusted_rand_index(gold, found)
    assert Reliability.of_groups(ari, 0.0).value == pytest.approx(0.6, abs=0.01)


def test_vertical_text_has_senses_and_is_read_back_as_it_was(
    corpus: Corpus, tmp_path: Path
) -> None:
    uses = find_uses(corpus, "bank")
    names = ["river side" if each else "" for each in RIVER]
    keep_labels(corpus, uses, names, {"river side": (2, 2)}, Path("b.csv"))
    out = tmp_path / "bank.vrt"
    counts = write_vertical(corpus, read_senses(corpus), EVERYTHING, out)
    assert (counts.words, counts.sentences, counts.texts, counts.senses) == (26, 4, 3, 2)
    lines = out.read_text("utf-8").splitlines()
    assert lines[:5] == [
        '<text id="d0" year="1850">', '<s id="texts.jsonl:0:0">', "the\t__UNDEF__",
        "river\t__UNDEF__", "bank\triver side",
    ]  # fmt: skip
    assert "&amp;\t__UNDEF__" in lines
    assert "-P sense -S s:0+id -S text:0+id+year" in encode_command(corpus, out, has_senses=True)
    again = prepared(
        out, tmp_path / "again", format="vertical", held_out=0.0, meta=("year",),
        word_attributes=("sense",), id_column="id",
    )  # fmt: skip
    assert find_uses(again, "bank").sentences() == uses.sentences()
    assert find_uses(again, "bank").metadata("year") == uses.metadata("year")
    found = find_uses(again, "bank")
    senses = [found.attribute(n, "sense")[found.spans[n][0]] for n in range(4)]
    assert senses == ["river side", "__UNDEF__", "river side", "__UNDEF__"]


def test_vertical_text_has_attributes_that_were_added(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("Mice ran.", encoding="utf-8")
    corpus, out = prepared(text, tmp_path / "c", annotate=("lemma",)), tmp_path / "a.vrt"
    write_vertical(corpus, (), EVERYTHING, out)
    assert out.read_text("utf-8").splitlines()[2:5] == ["Mice\tmouse", "ran\trun", ".\t."]
    assert " -P lemma " in encode_command(corpus, out, has_senses=False)
