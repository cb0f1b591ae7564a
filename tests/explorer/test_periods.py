"""Bars of frequency: few enough to be read, and all uses in them."""

from pathlib import Path

import pytest

from polyseme.meanings.concordance.lines import count_periods, count_words_by
from polyseme.meanings.concordance.uses import find_uses

from .making import make_corpus_of


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
