"""Files of other tools, each read back by a reader that is not its writer."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from corpora import prepared

from meanings.making import make_corpus
from meanings.test_named_groups import encoder, senses
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.groups.grouping import Grouping
from polyseme.meanings.groups.sense_files import MAX_JUDGMENTS, write_senses
from polyseme.meanings.groups.senses import Senses
from polyseme.tasks.embeddings.vector_files import read_vectors
from polyseme.text.formats.marked import parse_line

__all__ = ["encoder", "senses"]


def with_uses(senses: Senses, uses: Uses) -> Senses:
    """Other uses in the same groups, as far as they go."""
    number = len(uses)
    grouping = senses.grouping
    part = Grouping(grouping.labels[:number], grouping.stability, grouping.vectors[:number])
    return dataclasses.replace(senses, uses=uses, grouping=part)


@pytest.fixture
def novels(tmp_path: Path, senses: Senses) -> Senses:
    documents = [
        ("The river bank , the river bank ! Another bank .", {"year": "1850"}),
        ("A bank\u2028here", {"year": "1900"}),
    ]
    return with_uses(
        senses, find_uses(make_corpus(tmp_path, documents, meta=["year"]), "river bank")
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_durel_finds_the_word_where_the_file_says(novels: Senses, tmp_path: Path) -> None:
    write_senses(novels, tmp_path / "b.uses.tsv")
    rows = rows_of(tmp_path / "b.uses.tsv")
    assert len(rows) == 2
    for row in rows:
        begin, end = map(int, row["indexes_target_token"].split(":"))
        assert row["context"][begin:end] == "river bank"
        assert row["indexes_target_sentence"] == f"0:{len(row['context'])}"
        assert (row["lemma"], row["date"]) == ("river_bank", "1850")
    assert len({row["identifier"] for row in rows}) == 2


def test_a_text_with_tabs_and_quotes_stays_one_row(senses: Senses, tmp_path: Path) -> None:
    uses = Uses.of([['a"\tb\n', "bank", "c"]], [(1, 2)])
    write_senses(with_uses(senses, uses), tmp_path / "b.uses.tsv")
    [row] = rows_of(tmp_path / "b.uses.tsv")
    assert row["context"][slice(*map(int, row["indexes_target_token"].split(":")))] == "bank"


def test_judgments_say_which_uses_are_in_one_group(senses: Senses, tmp_path: Path) -> None:
    for name in ("uses", "judgments", "clusters"):
        write_senses(senses, tmp_path / f"bank.{name}.tsv")
    clusters = {r["identifier"]: r["cluster"] for r in rows_of(tmp_path / "bank.clusters.tsv")}
    known = {row["identifier"] for row in rows_of(tmp_path / "bank.uses.tsv")}
    judgments = rows_of(tmp_path / "bank.judgments.tsv")
    assert set(clusters) == known
    assert len(judgments) == 84 * 83 // 2
    for row in judgments:
        is_one = clusters[row["identifier1"]] == clusters[row["identifier2"]]
        assert row["judgment"] == ("4" if is_one else "1")


def test_of_very_many_pairs_a_sample_is_judged(senses: Senses, tmp_path: Path) -> None:
    many = [n for n in range(84) for _ in range(3)]
    grouping = dataclasses.replace(senses.grouping, labels=senses.grouping.labels[many])
    more = dataclasses.replace(senses, uses=senses.uses.select(many), grouping=grouping)
    write_senses(more, tmp_path / "bank.judgments.tsv")
    assert len(rows_of(tmp_path / "bank.judgments.tsv")) == MAX_JUDGMENTS


def test_conllu_has_every_sentence_once_with_its_senses(novels: Senses, tmp_path: Path) -> None:
    write_senses(novels, tmp_path / "b.conllu")
    lines = (tmp_path / "b.conllu").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# newdoc id = d0"
    words = [parse_line(line) for line in lines if line and not line.startswith("#")]
    assert all(words)
    forms = [word.form for word in words if word]
    assert " ".join(forms) == "The river bank , the river bank !"
    marked = [word.form for word in words if word and "Sense=" in word.columns[9]]
    assert marked == ["river", "bank", "river", "bank"]
    assert lines.count("") == 1


def test_conllu_can_be_prepared_as_a_corpus_again(senses: Senses, tmp_path: Path) -> None:
    write_senses(senses, tmp_path / "bank.conllu")
    corpus = prepared(tmp_path / "bank.conllu", tmp_path / "corpus", held_out=0)
    assert corpus.read_stats["sentences"] == 84
    assert corpus.read_stats["words"] == sum(map(len, senses.uses.sentences()))


def test_words_that_touch_are_told(tmp_path: Path, senses: Senses) -> None:
    corpus = make_corpus(tmp_path, [("At the bank, then.", {})], segmenter="spacy")
    write_senses(with_uses(senses, find_uses(corpus, "bank")), tmp_path / "b.conllu")
    words = [line.split("\t") for line in (tmp_path / "b.conllu").read_text().splitlines()]
    misc = {columns[1]: columns[9] for columns in words if len(columns) == 10}
    assert misc["bank"].split("|") == [f"Sense={senses.labels[0]}", "SpaceAfter=No"]
    assert misc[","] == "_"


def test_vectors_are_the_means_of_the_groups(senses: Senses, tmp_path: Path) -> None:
    write_senses(senses, tmp_path / "bank.vec")
    found = read_vectors(tmp_path / "bank.vec", {"bank#1", "bank#2", "bank"})
    assert set(found.words) == {"bank#1", "bank#2"}
    first = np.flatnonzero(np.array(senses.labels) == 1)
    expected = np.mean([senses.features.context[n] for n in first], axis=0)
    row = list(found.words).index("bank#1")
    assert np.allclose(found.vectors[row], expected, rtol=1e-4, atol=1e-5)
