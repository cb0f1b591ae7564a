"""Collocates, keywords and n-grams against counts that are made word by word."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from corpora import prepared

from meanings.making import make_corpus
from polyseme.errors import ConfigError, InputError
from polyseme.meanings.concordance.conditions import (
    ConditionError,
    Not,
    complete,
    keep_subcorpus,
    parse_where,
    path_of,
    remove_subcorpus,
)
from polyseme.meanings.concordance.search import CorpusColumns, Query
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.settings import (
    CollocateListConfig,
    NgramListConfig,
    WindowConfig,
    WordListConfig,
)
from polyseme.meanings.wordlists import ngrams as ngram_lists
from polyseme.meanings.wordlists.collocates import (
    FindsPlaces,
    NamedUses,
    collocates,
    collocates_between,
    collocates_of,
)
from polyseme.meanings.wordlists.counting import Unit
from polyseme.meanings.wordlists.keywords import keywords, keywords_of
from polyseme.meanings.wordlists.measures import Contingency
from polyseme.meanings.wordlists.ngrams import ngrams
from polyseme.text import shards
from polyseme.text.corpus import Corpus

ALL: dict[str, Any] = {"min_frequency": 1, "min_g2": 0, "top": 1000, "sort": "frequency"}
WORDS = ["the", "a", "river", "bank", "Bank", "money", "of", "closed", "steep", "loan", ",", "."]


def random_documents() -> list[tuple[str, dict[str, Any]]]:
    random = np.random.default_rng(3)
    return [
        (
            " ".join(random.choice(WORDS, random.integers(4, 25)).tolist()) + " .",
            {"year": 1800 + n},
        )
        for n in range(60)
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_ROW_GROUP", 7)
        folder = tmp_path_factory.mktemp("random")
        yield make_corpus(folder, random_documents(), meta=["year"])


def sentences(corpus: Corpus, where: range = range(60)) -> list[list[str]]:
    """Of these documents, in lower case, as another program reads them."""
    found: list[list[str]] = []
    for shard in corpus.shards:
        table = pq.read_table(shard, columns=["document", "words"])
        for row in table.to_pylist():
            if int(row["document"].lstrip("d")) in where:
                found.append([word.lower() for word in row["words"]])
    return found


def counted_by_hand(
    corpus: Corpus, left: int, right: int, where: range = range(60)
) -> tuple[Counter[str], Counter[str], int]:
    around, elsewhere, uses = Counter[str](), Counter[str](), 0
    for words in sentences(corpus, where):
        nodes = [at for at, word in enumerate(words) if word == "bank"]
        uses += len(nodes)
        for at, word in enumerate(words):
            if word == "bank":
                continue
            is_near = any(node - left <= at <= node + right for node in nodes)
            (around if is_near else elsewhere)[word] += 1
    return around, elsewhere, uses


@pytest.mark.parametrize(("left", "right"), [(2, 2), (0, 3), (1, 0), (50, 50)])
@pytest.mark.parametrize("where", [range(60), range(10, 40)])
def test_collocates_are_those_that_are_counted_word_by_word(
    corpus: Corpus, left: int, right: int, where: range
) -> None:
    condition = "" if len(where) == 60 else "year>=1810 and year<1840"
    around, elsewhere, uses = counted_by_hand(corpus, left, right, where)
    found = collocates(
        corpus,
        Query.of("bank"),
        WindowConfig(left=left, right=right),
        CollocateListConfig(**ALL),
        where=[condition] if condition else [],
    )
    assert found.uses == uses
    assert found.target_size == around.total()
    assert found.reference_size == elsewhere.total()
    expected = {
        word: (count, elsewhere[word])
        for word, count in around.items()
        if word.isalpha()
        and count / around.total() > (count + elsewhere[word]) / (around + elsewhere).total()
    }
    assert {each.word: (each.count, each.reference) for each in found} == expected
    assert expected


def test_a_sentence_may_be_the_window(corpus: Corpus) -> None:
    window = WindowConfig(sentence=True)
    found = collocates(corpus, Query.of("bank"), window, CollocateListConfig(**ALL))
    around, elsewhere, _ = counted_by_hand(corpus, 99, 99)
    assert (found.target_size, found.reference_size) == (around.total(), elsewhere.total())


def test_figures_of_a_collocate_are_those_of_its_counts(corpus: Corpus) -> None:
    found = collocates(corpus, Query.of("bank"), WindowConfig(), CollocateListConfig(**ALL))
    for each in found:
        target, reference = (np.array([float(n)]) for n in (each.count, each.reference))
        own = Contingency(target, reference, found.target_size, found.reference_size)
        assert each.g2 == pytest.approx(own.g2[0])
        assert each.log_ratio == pytest.approx(own.log_ratio[0])
        assert each.expected == pytest.approx(own.expected[0])
        assert each.log_ratio_low < each.log_ratio < each.log_ratio_high


def test_documents_of_a_collocate_are_those_it_stands_in(tmp_path: Path) -> None:
    texts = [
        "the river bank . a loan .",
        "river bank . river bank .",
        "bank loan . the a .",
        "a a .",
    ]
    corpus = make_corpus(tmp_path, [(text, {}) for text in texts])
    found = collocates(corpus, Query.of("bank"), WindowConfig(), CollocateListConfig(**ALL))
    [river] = [each for each in found if each.word == "river"]
    assert (river.count, river.reference, river.documents) == (3, 0, 2)
    # Words around bank: 3 in the first document, 4 in the second, 2 in the third.
    assert river.dp == pytest.approx((abs(1 / 3 - 3 / 9) + abs(2 / 3 - 4 / 9) + 2 / 9) / 2)


def test_a_case_sensitive_search_lists_words_as_they_are_written(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, [("bank Money and money . Bank Money .", {}), ("a a a a .", {})])
    config = CollocateListConfig(**ALL)
    found = collocates(corpus, Query.of("bank", case_sensitive=True), WindowConfig(), config)
    assert {each.word: each.count for each in found} == {"Money": 1, "money": 1, "and": 1}
    found = collocates(corpus, Query.of("bank"), WindowConfig(), config)
    assert {each.word: each.count for each in found} == {"money": 3, "and": 1}


def test_keywords_are_those_that_are_counted_word_by_word(corpus: Corpus) -> None:
    found = keywords(corpus, ("year<1820",), (), WordListConfig(**ALL))
    parts = [
        Counter(word for sentence in sentences(corpus, where) for word in sentence)
        for where in (range(20), range(20, 60))
    ]
    assert (found.target_size, found.reference_size) == (parts[0].total(), parts[1].total())
    expected = {word: (parts[0][word], parts[1][word]) for word in parts[0] if word.isalpha()}
    assert {each.word: (each.count, each.reference) for each in found} == expected
    ratios = [each.log_ratio for each in found]
    signs = [ratio > 0 for ratio in ratios]
    assert signs == sorted(signs, reverse=True)  # what is more frequent comes first


def test_the_rest_is_what_is_left_and_two_parts_have_none_in_common(corpus: Corpus) -> None:
    rest = keywords(corpus, ("year<1820",), (), WordListConfig(**ALL))
    other = keywords(corpus, ("year<1820",), ("year>=1820",), WordListConfig(**ALL))
    assert rest.words == other.words
    with pytest.raises(ConfigError, match="meet both"):
        keywords(corpus, ("year<1820",), ("year<1810",), WordListConfig(**ALL))
    with pytest.raises(ConfigError, match="no words in the rest"):
        keywords(corpus, ("year>=1800",), (), WordListConfig(**ALL))
    with pytest.raises(ConfigError, match="for collocates"):
        keywords(corpus, ("year<1820",), (), WordListConfig(sort="log-dice"))


def test_a_word_without_uses_there_is_told(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no use of 'nobody'"):
        collocates(corpus, Query.of("nobody"), WindowConfig(), CollocateListConfig())
    other = make_corpus(
        tmp_path / "x", [("bank .", {"year": 1}), ("a .", {"year": 2})], meta=["year"]
    )
    with pytest.raises(InputError, match="of --where"):
        collocates(other, Query.of("bank"), WindowConfig(), CollocateListConfig(), where="year=2")


def test_a_name_stands_for_the_condition_it_was_given(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, random_documents(), meta=["year"])
    columns = CorpusColumns(corpus)
    with pytest.raises(ConfigError, match="no column subcorpus"):
        parse_where("subcorpus=old", columns)
    old = parse_where("year<1820 or year=1850", columns)
    keep_subcorpus(corpus, "old", old)
    assert parse_where("subcorpus=old", columns) == old
    assert parse_where("subcorpus!=old", columns) == Not(old)
    # A name is kept as what it stands for, and can be given again.
    keep_subcorpus(corpus, "older", parse_where("subcorpus=old and year<1810", columns))
    keep_subcorpus(corpus, "old", parse_where("year=1859", columns))
    older = parse_where("subcorpus=older", columns)
    assert str(older) == "(year<1820 or year=1850) and year<1810"
    assert [each.shown for each in complete("subcorpus=o", columns)] == ["old", "older"]
    for wrong, told in [
        ("subcorpus=odl", "Did you mean"),
        ("subcorpus<old", "Expected a name after subcorpus="),
    ]:
        with pytest.raises(ConditionError, match=told):
            parse_where(wrong, columns)
    with pytest.raises(ConfigError, match="not a valid name"):
        keep_subcorpus(corpus, "a b", old)
    remove_subcorpus(corpus, "older")
    with pytest.raises(InputError, match="it has: old"):
        remove_subcorpus(corpus, "older")
    path_of(corpus).write_text("old = 3")
    with pytest.raises(InputError, match="no condition"):
        parse_where("subcorpus=old", columns)


def test_collocates_of_places_are_those_of_the_uses_there(corpus: Corpus) -> None:
    every = find_uses(corpus, "bank")
    config, unit, window = CollocateListConfig(**ALL), Unit(), WindowConfig(left=2, right=2)
    of_places = NamedUses("'bank'", FindsPlaces(every.places))
    found = collocates_of(corpus, of_places, window, config, unit)
    assert found == collocates(corpus, Query.of("bank"), window, config)
    half = [NamedUses(name, FindsPlaces(every.places[n::2])) for n, name in enumerate("ab")]
    between = collocates_between(corpus, (half[0], half[1]), window, config, unit)
    sides = [collocates_of(corpus, each, window, config, unit) for each in half]
    # Words around both are of neither, and the uses of either are no collocates.
    assert between.target_size < sides[0].target_size
    assert between.names == ("a", "b")
    assert "bank" not in {each.word for each in between}
    signs = [each.log_ratio > 0 for each in between]
    assert signs == sorted(signs, reverse=True)


@pytest.mark.parametrize("against", [None, "river"])
def test_keywords_of_uses_are_of_their_sentences_less_those_with_both(
    corpus: Corpus, against: str | None
) -> None:
    of, other = uses_of(corpus, "bank"), against and uses_of(corpus, against)
    found = keywords_of(corpus, of, other or None, WordListConfig(**ALL))
    here, there = Counter[str](), Counter[str]()
    for words in sentences(corpus, range(60)):
        is_here, is_there = "bank" in words, against is None or against in words
        if is_here and (against is None or not is_there):
            here.update(word for word in words if word != "bank")
        elif is_there and not is_here:
            there.update(word for word in words if word != against)
    counts = {each.word: (each.count, each.reference) for each in found}
    listed = {word for word in here | there if word.isalpha()}
    assert counts == {word: (here[word], there[word]) for word in listed}
    assert not found.uses


VERTICAL = """<text id="a">
<s>
The\tthe\tDET
banks\tbank\tNOUN
lend\tlend\tVERB
money\tmoney\tNOUN
</s>
<s>
A\ta\tDET
bank\tbank\tNOUN
lent\tlend\tVERB
the\tthe\tDET
moneys\tmoney\tNOUN
</s>
<s>
I\tI\tPRON
money\tmoney\tVERB
the\tthe\tDET
table\ttable\tNOUN
</s>
</text>
"""


@pytest.fixture
def annotated(tmp_path: Path) -> Corpus:
    (tmp_path / "t.vert").write_text(VERTICAL, encoding="utf-8")
    return prepared(
        tmp_path / "t.vert",
        tmp_path / "corpus",
        format="vertical",
        held_out=0.0,
        word_attributes=("lemma", "upos"),
    )


def test_lemmas_may_be_counted_instead_of_words(annotated: Corpus) -> None:
    query = Query.of("bank", forms=["banks"])
    config = CollocateListConfig(**ALL, attribute="lemma")
    found = collocates(annotated, query, WindowConfig(), config)
    assert {each.word: each.count for each in found}["lend"] == 2


def test_a_part_of_speech_is_compared_with_itself(annotated: Corpus) -> None:
    query = Query.of("bank", forms=["banks"])
    config = CollocateListConfig(**ALL, attribute="lemma", upos=("NOUN",))
    found = collocates(annotated, query, WindowConfig(), config)
    assert {each.word: (each.count, each.reference) for each in found} == {"money": (2, 0)}
    assert (found.target_size, found.reference_size) == (2, 1)  # nouns


def test_an_attribute_that_a_corpus_does_not_have_is_refused(corpus: Corpus) -> None:
    config = CollocateListConfig(attribute="lemma")
    with pytest.raises(ConfigError, match="--word-attributes lemma"):
        collocates(corpus, Query.of("bank"), WindowConfig(), config)


def test_a_list_is_a_table_and_lines_of_json(corpus: Corpus, tmp_path: Path) -> None:
    found = collocates(corpus, Query.of("bank"), WindowConfig(), CollocateListConfig(**ALL))
    found.to_csv(tmp_path / "c.csv")
    lines = (tmp_path / "c.csv").read_text("utf-8-sig").splitlines()
    assert lines[0].startswith('"word","together","elsewhere"')
    assert len(lines) == 1 + len(found)
    assert [json.loads(json.dumps(each))["word"] for each in found.json_lines()] == [
        each.word for each in found
    ]
    assert repr(found).startswith("<Collocates of 'bank': ")
    assert found._repr_html_().startswith("<div>")


def uses_of(corpus: Corpus, word: str) -> NamedUses:
    return NamedUses.of_query(Query.of(word), corpus)._replace(name=word)


def ngrams_by_hand(
    corpus: Corpus, size: int, where: range = range(60), word: str = ""
) -> Counter[str]:
    found = Counter[str]()
    for words in sentences(corpus, where):
        for at in range(len(words) - size + 1):
            own = words[at : at + size]
            if all(each.isalpha() for each in own) and (not word or word in own):
                found[" ".join(own)] += 1
    return found


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("word", ["", "bank"])
@pytest.mark.parametrize("where", [range(60), range(10, 40)])
def test_ngrams_are_those_that_are_counted_word_by_word(
    corpus: Corpus, size: int, word: str, where: range
) -> None:
    condition = () if len(where) == 60 else ("year>=1810", "year<1840")
    config = NgramListConfig(size=size, min_frequency=2, top=20_000)
    found = ngrams(corpus, uses_of(corpus, word) if word else None, config, where=condition)
    expected = ngrams_by_hand(corpus, size, where, word)
    assert found.total == expected.total()
    often = {ngram: count for ngram, count in expected.items() if count >= 2}
    assert {each.ngram: each.count for each in found} == often
    assert found.num_found == len(often)
    assert list(found) == sorted(found, key=lambda each: (-each.count, each.ngram))


def test_the_most_frequent_ngrams_are_exact_where_there_are_too_many_to_count_each(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngram_lists, "_PLACES", 64)
    monkeypatch.setattr(ngram_lists, "_COUNTED", 16)
    expected = ngrams_by_hand(corpus, 2)
    found = ngrams(corpus, None, NgramListConfig(size=2, min_frequency=1, top=1000))
    assert found.at_least > 1
    assert len(found) > 0
    assert {each.ngram: each.count for each in found} == {
        ngram: count for ngram, count in expected.items() if count >= found.at_least
    }


def test_ngrams_of_terms_lemmas_and_parts_of_speech(annotated: Corpus) -> None:
    every = NgramListConfig(size=2, min_frequency=1, attribute="lemma")
    found = {each.ngram: each for each in ngrams(annotated, None, every)}
    assert (found["bank lend"].count, found["bank lend"].documents) == (2, 1)
    term = ngrams(annotated, uses_of(annotated, "bank lent"), every.model_copy(update={"size": 3}))
    assert [each.ngram for each in term] == ["a bank lend", "bank lend the"]
    nouns = ngrams(annotated, None, every.model_copy(update={"size": 1, "upos": ("NOUN",)}))
    assert {each.ngram: each.count for each in nouns} == {"bank": 2, "money": 2, "table": 1}


def test_documents_and_dispersion_of_ngrams(tmp_path: Path) -> None:
    texts = ["a bank a bank .", "a bank of a .", "of of of of of of of of of of ."]
    corpus = make_corpus(tmp_path, [(text, {}) for text in texts])
    [found] = ngrams(corpus, uses_of(corpus, "bank"), NgramListConfig(size=2))
    assert (found.ngram, found.count, found.documents) == ("a bank", 3, 2)
    assert found.per_million == pytest.approx(3e6 / 21)
    assert found.dp == pytest.approx((abs(2 / 3 - 5 / 21) + abs(1 / 3 - 5 / 21) + 11 / 21) / 2)
