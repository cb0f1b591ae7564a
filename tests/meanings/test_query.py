"""What a user asks for becomes spellings of the corpus and comparisons, and never anything else."""

import contextlib
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from meanings.making import make_corpus
from polyseme.errors import ConfigError
from polyseme.meanings.concordance.query import Comparison, Query
from polyseme.text.corpus import Corpus

WORDS = ["play", "Plays", "PLAYED", "playing", "ΟΔΟΣ", "οδος", "straße", "STRASSE", "İ", "K", "k",
         "苹果", "don't", "a.c", "abc", "x" * 40]  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("query"), [(" ".join(WORDS), {})])


def found(query: Query, corpus: Corpus) -> set[str]:
    return {word for term in query.resolve(corpus) for spellings in term for word in spellings}


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
    with pytest.raises(ConfigError, match=r"Nothing to look for|cannot occur in a text"):
        Query.of(form)
    with pytest.raises(ConfigError, match="cannot occur in a text"):
        Query.of("a", forms=[form])


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ud800.* cannot occur in a text"):
        Query.of("a\ud800")


def test_a_pattern_and_forms_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"play\|plays"):
        Query.of("play", forms=["plays"], regex="p.*")


@pytest.mark.parametrize(
    ("text", "column", "operator", "value"),
    [
        ("year<1860", "year", "<", "1860"),
        (" year <= 1860 ", "year", "<=", "1860"),
        ("author=Charles Dickens", "author", "=", "Charles Dickens"),
        ("genre!=news", "genre", "!=", "news"),
        ("year==1860", "year", "=", "1860"),
        ("formula= =1+1", "formula", "=", "=1+1"),
        ("note>a<b", "note", ">", "a<b"),
        ("author=", "author", "=", ""),
        ("年>=一", "年", ">=", "一"),
        ("my column>x\ny", "my column", ">", "x\ny"),
    ],
)
def test_a_condition_is_a_column_a_comparison_and_a_value(
    text: str, column: str, operator: str, value: str
) -> None:
    assert Comparison.parse(text) == Comparison(column, operator, value)


@pytest.mark.parametrize("text", ["", "year", "<1860", "year 1860", "!", "year!1860", " =x"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a condition.*year<1860"):
        Comparison.parse(text)


@pytest.mark.parametrize(
    ("text", "value", "is_met"),
    [
        ("year<1860", "900", True),  # as text, "900" would come after
        ("year<1860", "1860", False),
        ("year=1860", "1860.0", True),
        ("year=01860", "1860", True),
        ("year<1860", "1850-03-01", True),  # a date is text, and comes before
        ("year<1860", "ca. 1850", False),
        ("year>-1", "0", True),
        ("year<1e9", "5", False),  # no number: as text, "5" comes after "1e9"
        ("year<inf", "5", True),  # no number either
        ("year=１８６０", "1860", False),  # digits of other scripts are text
        ("year<1860", None, False),
        ("year>=1860", None, False),
        ("author=", None, True),
        ("author!=", None, False),
        ("author!=Dickens", None, True),
        ("author=Dickens", None, False),
        ("n=9007199254740993", "9007199254740992", False),  # equal as floats
    ],
)
def test_numbers_are_compared_as_numbers_and_all_else_as_text(
    text: str, value: str | None, is_met: bool
) -> None:
    assert Comparison.parse(text).accepts(value) is is_met


def plainly(operator: str, found: str | None, value: str) -> bool:
    """The rule again, case by case."""
    number = r"[+-]?[0-9]{1,100}(\.[0-9]{1,100})?"
    if found is None:
        return {"=": value == "", "!=": value != ""}.get(operator, False)
    if re.fullmatch(number, found) and re.fullmatch(number, value):
        order = Decimal(found).compare(Decimal(value))
        sign = int(order)
    else:
        sign = (found > value) - (found < value)
    return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0,
            "=": sign == 0, "!=": sign != 0}[operator]  # fmt: skip


OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])
TEXTS = st.text(max_size=8) | st.from_regex(r"\A[+-]?[0-9]{1,5}(\.[0-9]{1,3})?\Z")
COLUMNS = st.text(st.characters(exclude_characters="<>=!"), min_size=1, max_size=6).map(str.strip)


def agrees(column: str, operator: str, value: str, found: str | None) -> None:
    parsed = Comparison.parse(f"{column}{operator} {value}")
    assert parsed == Comparison(column, operator, value.strip())
    assert parsed.accepts(found) is plainly(operator, found, value.strip())


@given(COLUMNS.filter(bool), OPERATORS, TEXTS, TEXTS | st.none())
@example("a", "<", "'; DROP TABLE x; --", "__import__('os')")
@settings(max_examples=300, deadline=None)
def test_conditions_choose_as_a_plain_filter_does(
    column: str, operator: str, value: str, found: str | None
) -> None:
    agrees(column, operator, value, found)


@pytest.mark.slow
@given(COLUMNS.filter(bool), OPERATORS, TEXTS, TEXTS | st.none())
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_ten_thousand_conditions_choose_as_a_plain_filter_does(
    column: str, operator: str, value: str, found: str | None
) -> None:
    agrees(column, operator, value, found)


@given(st.text(max_size=20))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert Comparison.parse(text).accepts("1") in (True, False)


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    Comparison.parse("year<1").check_column(["document", "year"])
    with pytest.raises(ConfigError, match=r"no column 'date'.*document, year"):
        Comparison.parse("date<1").check_column(["document", "year"])
