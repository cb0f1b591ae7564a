"""Lines stand aligned, sorted and sampled as concordancers do it.

Frequencies by period and Gries's DP, against numbers worked out by hand.
"""

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from meanings.making import make_novels
from polyseme.meanings.concordance.conditions import parse_condition
from polyseme.meanings.concordance.lines import (
    Frequency,
    Line,
    count_words_by,
    dispersion,
    first_words,
    frequencies,
    kwic_lines,
    sample_uses,
    shortened,
    sort_uses,
)
from polyseme.meanings.concordance.search import CorpusColumns
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.text import shards


def uses_of(*sentences: str, word: str = "bank", **metadata: list[object]) -> Uses:
    """A use of the word in each sentence, where it stands first."""
    words = [sentence.split() for sentence in sentences]
    spans = [(each.index(word), each.index(word) + 1) for each in words]
    return Uses.of(words, spans, metadata)


def texts(uses: Uses) -> list[str]:
    return [use.text for use in uses]


def test_left_sorts_by_the_word_before_then_by_the_one_further_left() -> None:
    uses = uses_of("a the bank", "z A bank", "b The bank", "bank", "c a bank", "the bank")
    expected = ["bank", "c a bank", "z A bank", "the bank", "a the bank", "b The bank"]
    assert texts(sort_uses(uses, "left")) == expected


def test_right_sorts_by_the_words_after_in_any_case() -> None:
    uses = uses_of("bank Of z", "bank of a", "bank", "bank holiday", "bank of")
    expected = ["bank", "bank holiday", "bank of", "bank of a", "bank Of z"]
    assert texts(sort_uses(uses, "right")) == expected


def test_a_column_sorts_numbers_by_size_then_text_then_none() -> None:
    years = ["1900", None, "ca. 1850", "900", "-5", "1900.5"]
    uses = uses_of(*(f"bank {n}" for n in range(6)), year=list(years))
    assert sort_uses(uses, "year").metadata("year") == [
        *("-5", "900", "1900", "1900.5", "ca. 1850", None),
    ]


def test_a_sample_is_the_same_for_a_seed_and_in_order() -> None:
    uses = uses_of(*(f"bank {n}" for n in range(100)))
    drawn = texts(sample_uses(uses, 10, seed=1))
    assert drawn == texts(sample_uses(uses, 10, seed=1))
    assert drawn != texts(sample_uses(uses, 10, seed=2))
    assert len(set(drawn)) == 10
    assert drawn == sorted(drawn, key=lambda text: int(text.split()[1]))
    assert texts(sample_uses(uses, 100, seed=1)) == texts(uses)


def test_every_use_is_drawn_about_as_often() -> None:
    uses = uses_of(*(f"bank {n}" for n in range(5)))
    drawn = Counter(text for seed in range(1000) for text in texts(sample_uses(uses, 1, seed=seed)))
    assert all(150 < drawn[f"bank {n}"] < 250 for n in range(5))  # 200 expected, deviation 13


def test_the_keyword_stands_in_one_column() -> None:
    lines = kwic_lines(uses_of("They sat on the bank of a river", "bank", "the bank"), 30)
    assert lines[0] == (" …sat on the", "bank", "of a river  ")
    assert lines[1] == (" " * 12, "bank", " " * 12)
    assert lines[2].left == "         the"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two three", "one two three"),
        ("one two three four", "one two…"),  # "three" would not fit with the mark
        ("one two three, four", "one two…"),
        ("onetwothreefourfive", "onetwothreef…"),
        ("一二三四五六七八九", "一二三四五六…"),
        ("见 Wikipedia 词条也是", "见 Wikipedia…"),
    ],
)
def test_a_side_is_cut_between_words_and_any_two_characters_of_chinese(
    text: str, shown: str
) -> None:
    assert first_words(text, 13) == shown
    backwards = shortened(Line(text[::-1], "", ""), 13).left
    assert backwards[::-1] == shown


@given(st.text(st.sampled_from("ab 走é\u0301"), max_size=80), st.integers(2, 40))
def test_what_is_kept_of_a_side_fits_and_is_a_beginning(text: str, cells: int) -> None:
    shown = first_words(text, cells)
    assert cell_len(shown) <= max(cells, 0) or cell_len(text) <= cells
    assert text.startswith(shown.removesuffix("…"))
    assert (shown == text) == (cell_len(text) <= cells)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), max_size=8
    ),
    st.integers(0, 7),
    st.integers(0, 100),
)
@settings(max_examples=300, deadline=None)
def test_all_lines_are_equally_wide_whatever_is_in_them(
    words: list[str], begin: int, width: int
) -> None:
    words = [*words, "bank"]
    place = begin % len(words)
    uses = Uses.of([words, ["bank"]], [(place, place + 1), (0, 1)])
    lines = kwic_lines(uses, width)
    widths = {tuple(map(cell_len, line)) for line in lines}
    assert len(widths) == 1
    assert sum(widths.pop()) + 2 == max(width, 24)


def test_words_are_counted_for_each_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_ROW_GROUP", 2)
    corpus = make_novels(tmp_path)
    counted = count_words_by(corpus, ["year", "author"])
    assert counted["year"] == {"1850": 12, "1861": 6, "1900": 9, "ca. 1850": 6}
    assert counted["author"] == {"Austen": 12, "Dickens": 12, None: 9}
    only = count_words_by(corpus, ["author"], parse_condition("year>=1861", CorpusColumns(corpus)))
    assert only["author"] == {"Dickens": 12, None: 9}  # as text, "ca." comes after "1861"


def test_uses_are_counted_per_million_words_of_their_period(tmp_path: Path) -> None:
    corpus = make_novels(tmp_path)
    found = frequencies(find_uses(corpus, "bank"), "year", count_words_by(corpus, ["year"])["year"])
    assert [(each.value, each.uses, each.words) for each in found] == [
        ("1850", 2, 12),
        ("1861", 3, 6),
        ("1900", 1, 9),
        ("ca. 1850", 0, 6),
    ]
    assert [each.per_million for each in found[:2]] == [2e6 / 12, 5e5]
    assert Frequency("x", 0, 10).per_million == 0


def uses_in(*documents: str) -> Uses:
    return Uses.of([["a"]] * len(documents), [(0, 1)] * len(documents), {"document": documents})


def test_dispersion_by_hand() -> None:
    # Shares of words .5 .3 .2, of uses .25 .75 0: half of (.25 + .45 + .2).
    found = dispersion(uses_in("a", "b", "b", "b"), {"a": 50, "b": 30, "c": 20})
    assert math.isclose(found, 0.45)
