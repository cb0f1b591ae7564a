"""Frequencies by period and Gries's DP, against numbers worked out by hand."""

import math
from pathlib import Path

import pytest

from meanings.making import make_novels
from polyseme.meanings.concordance.conditions import parse_condition
from polyseme.meanings.concordance.lines import (
    Frequency,
    count_words_by,
    dispersion,
    frequencies,
)
from polyseme.meanings.concordance.search import CorpusColumns
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.text import shards


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
