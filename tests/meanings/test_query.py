"""What a user asks for becomes spellings of the corpus, and never anything else."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest
from required import needs

from meanings.making import make_corpus
from polyseme.errors import ConfigError
from polyseme.meanings.concordance.search import Query, in_longer_words
from polyseme.meanings.concordance.uses import find_uses
from polyseme.text.corpus import Corpus

WORDS = ["play", "Plays", "PLAYED", "playing", "ΟΔΟΣ", "οδος", "straße", "STRASSE", "İ", "K", "k",
         "苹果", "don't", "a.c", "abc", "x" * 40]  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("query"), [(" ".join(WORDS), {})])


def found(query: Query, corpus: Corpus) -> set[str]:
    terms = (term for term in query.resolve(corpus) if isinstance(term, tuple))
    return {word for term in terms for spellings in term for word in spellings}


@pytest.mark.parametrize("case_sensitive", [True, False])
@pytest.mark.parametrize("word", [*WORDS, "plays", "ODOS", "οδοσ", "ss", "A.C", "ŚTRASSE"])
def test_a_word_is_found_as_by_folding_every_word(
    corpus: Corpus, word: str, case_sensitive: bool
) -> None:
    fold = str if case_sensitive else str.casefold
    expected = {each for each in WORDS if fold(each) == fold(word)}
    assert found(Query.of(word, case_sensitive=case_sensitive), corpus) == expected


def test_any_of_several_forms_will_do(corpus: Corpus) -> None:
    query = Query.of("play", forms=["plays", "played", "unheard-of"])
    assert query.resolve(corpus) == [(frozenset({"play", "Plays", "PLAYED"}),)]


def test_a_term_has_a_set_of_spellings_for_each_word(corpus: Corpus) -> None:
    assert Query.of("Play ABC").resolve(corpus) == [(frozenset({"play"}), frozenset({"abc"}))]
    assert Query.of("play unheard").resolve(corpus) == []


@pytest.mark.parametrize("pattern", ["play(s|ed)?", "p.*", "a.c", "a\\.c", "[a-h]", "苹.", "a|b|k"])
@pytest.mark.parametrize("case_sensitive", [True, False])
def test_a_pattern_matches_whole_words(corpus: Corpus, pattern: str, case_sensitive: bool) -> None:
    flags = 0 if case_sensitive else re.IGNORECASE
    expected = {word for word in WORDS if re.fullmatch(pattern, word, flags)}
    assert found(Query.of(regex=pattern, case_sensitive=case_sensitive), corpus) == expected


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "[", "(?=a)", "*", "(?P<a", "a{999999}"])
def test_a_pattern_that_is_none_is_refused(corpus: Corpus, pattern: str) -> None:
    with pytest.raises(ConfigError, match="not a valid regular expression"):
        Query.of(regex=pattern).resolve(corpus)


@pytest.mark.timeout(20)
def test_no_pattern_takes_for_ever(corpus: Corpus) -> None:
    assert found(Query.of(regex="(x+x+)+y"), corpus) == set()


@pytest.mark.parametrize("form", ["", "  ", "\t"])
def test_nothing_to_look_for_is_refused(form: str) -> None:
    with pytest.raises(ConfigError, match=r"Nothing to look for|is empty or not valid Unicode"):
        Query.of(form)
    with pytest.raises(ConfigError, match="is empty or not valid Unicode"):
        Query.of("a", forms=[form])


def test_traditional_script_is_found_in_simplified_and_the_other_way_round(tmp_path: Path) -> None:
    for script, other in (("意义", "意義"), ("意義", "意义")):
        folder = tmp_path / script
        folder.mkdir()
        corpus = make_corpus(
            folder, [(f"{script}何在。", {})], language="zh", segmenter="characters"
        )
        assert Query.of(other).resolve(corpus) == [tuple(frozenset({each}) for each in script)]
        assert Query.of(script).resolve(corpus) == Query.of(other).resolve(corpus)
        assert not Query.of("無此").resolve(corpus)


@needs(importlib.util.find_spec("jieba") is not None, "the extra [zh]")
def test_a_chinese_word_that_is_mostly_part_of_longer_ones_is_told_so(tmp_path: Path) -> None:
    text = "先生说。学生来了。医生来了。先生走了。生，死。银行关了。"
    corpus = make_corpus(tmp_path / "words", [(text, {})], language="zh", segmenter=None)
    words = Counter(use.form for use in find_uses(corpus, Query.of(regex=".*")))
    inside = sum(count for word, count in words.items() if "生" in word and word != "生")
    mostly = in_longer_words(Query.of("生"), corpus)
    assert mostly is not None
    assert mostly[:] == (("生",), words["生"], inside)
    assert (words["生"], inside) == (1, 4)  # or the test shows nothing
    assert "生 is a word by itself 1 time here; longer words" in mostly.note
    assert "4 times" in mostly.note
    for other in (Query.of("银行"), Query.of("了"), Query.of(regex="生"), Query.of("说银行")):
        assert in_longer_words(other, corpus) is None
    assert len(find_uses(corpus, "生")) == 1
    characters = make_corpus(
        tmp_path / "characters", [(text, {})], language="zh", segmenter="characters"
    )
    assert in_longer_words(Query.of("生"), characters) is None
    assert len(find_uses(characters, "生")) == 5
