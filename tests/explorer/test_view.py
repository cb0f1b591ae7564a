"""Every state is an address, and back.

Bars of frequency: few enough to be read, and all uses in them.

English and Chinese say the same things.
"""

import re
import string
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import PolysemeError
from polyseme.explorer import language
from polyseme.explorer.language import LANGUAGES, Language, choose_language, sentences
from polyseme.explorer.view import FormValues, View, pack, unpack
from polyseme.meanings.concordance.lines import count_periods, count_words_by
from polyseme.meanings.concordance.uses import find_uses

from .making import make_corpus_of


def read(address: str) -> View:
    return View.read(FormValues(urlsplit(address).query, most=100))


@given(
    st.builds(
        View,
        q=st.text(min_size=1, max_size=20).filter(str.strip),
        regex=st.booleans(),
        finer=st.integers(-8, 8),
        layer=st.none() | st.integers(0, 12),
        where=st.lists(st.sampled_from(["year<1860", "a=b&c", "x=é #"]), max_size=3).map(tuple),
        uses=st.sets(st.integers(0, 5000), max_size=30).map(sorted).map(tuple),
        page=st.integers(1, 99),
        like=st.none() | st.integers(0, 5000),
    )
)
def test_a_view_comes_back_from_its_address(view: View) -> None:
    assert read(view.address("/word", page=view.page)) == view


@given(st.sets(st.integers(0, 10**6)))
def test_a_choice_of_uses_comes_back(numbers: set[int]) -> None:
    assert unpack(pack(sorted(numbers))) == tuple(sorted(numbers))


def test_a_choice_of_5000_uses_fits_into_an_address() -> None:
    assert len(pack(range(0, 10_000, 2))) < 16_000


@pytest.mark.parametrize(
    "query",
    ["finer=x", "finer=99", "page=0", "page=-1", "layer=-1", "like=1e9", "uses=1.-2", "uses=..",
     f"q={'x' * 5000}", "page=99999999999999999999", "uses=٣"],
)  # fmt: skip
def test_an_address_that_makes_no_sense_is_refused_in_words(query: str) -> None:
    with pytest.raises(PolysemeError):
        read(f"/word?{query}")


def test_forms_may_stand_behind_a_chinese_comma() -> None:
    assert View(q="走，走了").query.forms == ("走", "走了")


@pytest.mark.parametrize(
    ("years", "labels"),
    [
        (range(1850, 1866), [str(year) for year in range(1850, 1866)]),  # sixteen fit
        (range(1850, 1867), [f"{year}–{year + 1}" for year in range(1850, 1867, 2)]),
        (range(1800, 2000), [f"{year}–{year + 19}" for year in range(1800, 2000, 20)]),
        (range(-250, 251, 10), [f"{year}–{year + 49}" for year in range(-250, 251, 50)]),
    ],
)
def test_years_become_at_most_sixteen_periods(
    tmp_path: Path, years: range, labels: list[str]
) -> None:
    rows = [{"text": "The bank.", "year": year} for year in years]
    corpus = make_corpus_of(tmp_path, rows, meta=("year",))
    bars = count_periods(
        find_uses(corpus, "bank"), "year", count_words_by(corpus, ["year"])["year"]
    )
    assert [bar.label for bar in bars] == labels
    assert len(bars) <= 16
    assert sum(bar.uses for bar in bars) == len(years)
    for bar in bars:  # each leads to its lines
        assert len(find_uses(corpus, "bank", where=bar.where)) == bar.uses


def test_of_many_names_those_with_most_uses_are_shown(tmp_path: Path) -> None:
    authors = [f"author {number:02}" for number in range(20)]
    rows = [
        {"text": "The bank. " * (1 + (n >= 4)), "author": name} for n, name in enumerate(authors)
    ]
    corpus = make_corpus_of(tmp_path, rows, meta=("author",))
    sizes = count_words_by(corpus, ["author"])["author"]
    bars = count_periods(find_uses(corpus, "bank"), "author", sizes)
    assert [bar.label for bar in bars] == authors[4:]


EXPLORER = Path(language.__file__).parent
MADE = ("change_", "condition_", "edit_", "method_", "movement_", "query_", "trust_", "unit_")
"""Beginnings of keys that are put together in a template."""


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_sentences_with_the_same_values() -> None:
    english, chinese = (sentences(code) for code in LANGUAGES)
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert places(text) == places(chinese[key]), key
        assert text != chinese[key] or key in ("title",), key


def test_every_sentence_that_a_page_says_is_there_and_none_is_idle() -> None:
    files = [*EXPLORER.glob("templates/*.html"), *EXPLORER.glob("*.py")]
    pages = "\n".join(path.read_text(encoding="utf-8") for path in files)
    said = set(re.findall(r'"([a-z_0-9]+)"|\'([a-z_0-9]+)\'', pages))
    named = {name for pair in said for name in pair if name}
    idle = {key for key in sentences("en") if key not in named and not key.startswith(MADE)}
    assert idle == set()
    direct = set(re.findall(r"""(?:say|PageError|told_as)\(["']([a-z_0-9]+)["'][,)]""", pages))
    assert direct <= sentences("en").keys()


def test_one_is_never_told_in_the_plural_in_english() -> None:
    """Whatever is counted: every number of every sentence is put to one."""
    plural = re.compile(r"\b1 (?!was)\w{2,}s\b|\b1 \w+ are\b|\bare 1\b")
    told = {
        key: Language("en")(key, **dict.fromkeys(places(text), 1))
        for key, text in sentences("en").items()
    }
    assert {key for key, text in told.items() if plural.search(text)} == NEVER_ONE
    assert Language("en")("uses", n=1) == "1 use"
    assert Language("en")("uses", n=0) == "0 uses"
    assert Language("en")("steps", n=-1) == "-1 step"
    assert Language("zh")("uses", n=1) == "1 个用例"


NEVER_ONE = {
    "sample", "all_lines", "jsd", "bits", "score_total", "bad_name", "too_long", "too_many_fields",
    "form_too_large", "too_many_words", "condition_too_long", "condition_too_many",
    "query_too_long", "query_too_large",
    "condition_not_all_numbers", "change_changed", "change_apart", "change_alike", "trust_unlike",
}  # fmt: skip
"""Limits, what is shown only of many, numbers with decimals, and operators before a verb."""


def test_the_address_decides_then_the_corpus_then_the_browser() -> None:
    assert choose_language("zh", "en", "en") == "zh"
    assert choose_language("", "en-GB,zh", "zh") == "zh"
    assert choose_language("", "fr, zh-CN;q=0.8", "") == "zh"
    assert choose_language("xx", "fr", "") == "en"
