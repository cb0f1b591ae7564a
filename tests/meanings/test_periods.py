"""Senses over periods: the shares that were planted lie in the intervals."""

from pathlib import Path

import numpy as np
import pytest
from command_line import polyseme as polyseme_command

import polyseme
from meanings.making import make_corpus
from polyseme.errors import InputError, PolysemeError
from polyseme.meanings.change.periods import DatedSenses, SensesOverTime, senses_over_time
from polyseme.meanings.concordance.kept_senses import Reliability
from polyseme.meanings.concordance.search import Query
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.labels import keep_labels

SENSES = "river", "money", "trust"
PLANTED = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.02, 0.58, 0.4]])
NUM_SETS = 200


def simulated(
    random: np.random.Generator, right: float, *, by_size: bool, documents: int = 20
) -> DatedSenses:
    """Uses of four periods. A document has a leaning of its own; the misplaced stand anywhere."""
    senses: list[str] = []
    dates: list[str] = []
    names: list[str] = []
    where = PLANTED.mean(axis=0) if by_size else np.full(3, 1 / 3)
    for period, shares in enumerate(PLANTED):
        for document in range(documents):
            own, number = random.dirichlet(6 * shares + 1e-3), int(random.integers(3, 15))
            is_right = random.random(number) < right
            drawn = (random.choice(3, size=number, p=share) for share in (own, where))
            senses += [SENSES[sense] for sense in np.where(is_right, *drawn)]
            dates += [str(1840 + 20 * period + document % 20)] * number
            names += [f"{period}-{document}"] * number
    return DatedSenses("bank", "year", senses, dates, names)


def is_within(found: SensesOverTime) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    """(4, 3) whether the planted share lies in each interval."""
    order = [found.senses.index(name) for name in SENSES]
    low, high = (
        np.array([[getattr(each.shares[n], end) for n in order] for each in found.periods])
        for end in ("low", "high")
    )
    within: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (low <= PLANTED) & (high >= PLANTED)
    return within


@pytest.mark.parametrize(
    ("right", "by_size"), [(1.0, True), (0.75, True), (0.75, False), (0.5, False)]
)
def test_planted_shares_lie_in_nine_of_ten_intervals(right: float, by_size: bool) -> None:
    reliability = None if right == 1.0 else Reliability(right, right - 0.1)
    within = []
    for number in range(NUM_SETS):
        given = simulated(np.random.default_rng(number), right, by_size=by_size)
        within.append(is_within(senses_over_time(given, 4, reliability)))
    coverage = np.mean(within, axis=0)
    assert coverage.mean() >= 0.93
    assert coverage.min() >= 0.9


def test_without_the_error_of_sorting_most_intervals_miss_what_was_planted() -> None:
    """So the wider ones are no idle caution."""
    within = [
        is_within(
            senses_over_time(simulated(np.random.default_rng(n), 0.5, by_size=False), 4, None)
        )
        for n in range(20)
    ]
    assert np.mean(within, axis=0).min() < 0.5


def test_the_same_twice_and_wider_where_sorting_is_worse() -> None:
    given = simulated(np.random.default_rng(1), 1.0, by_size=True)
    assert senses_over_time(given, 4, None) == senses_over_time(given, 4, None)
    widths = []
    for value in (1.0, 0.8, 0.5):
        found = senses_over_time(given, 4, Reliability(value, value - 0.1 * (value < 1)))
        assert [period.label for period in found.periods] == [
            "1840–1859", "1860–1879", "1880–1899", "1900–1919",
        ]  # fmt: skip
        shares = [share for period in found.periods for share in period.shares]
        assert all(0 <= each.low <= each.share <= each.high <= 1 for each in shares)
        widths.append(sum(each.high - each.low for each in shares))
    assert widths == sorted(widths)
    assert widths[2] > 1.5 * widths[0]


def test_groups_may_follow_the_period_and_not_the_sense() -> None:
    """As where all uses of one register stand in one group: 100 % is no certainty."""
    dates = ["1850"] * 400 + ["1899"] * 400
    senses = ["a"] * 400 + ["b"] * 400
    given = DatedSenses("bank", "year", senses, dates, [str(n // 10) for n in range(800)])
    found = senses_over_time(given, 2, Reliability(0.4, 0.3))
    first = found.periods[0].shares[0]
    assert first.share == 1
    assert 0.3 < first.low < 0.45
    assert senses_over_time(given, 2, None).periods[0].shares[0].low > 0.9


def test_uses_without_a_date_are_counted_and_said() -> None:
    dates = ["1850", None, "1851-03-02", "unknown", "1899", ""]
    given = DatedSenses("bank", "year", ["a", "a", "b", "b", "a", "a"], dates, list("uvwxyz"))
    found = senses_over_time(given, 2, None)
    assert found.undated == 3
    assert found.notes[0] == "Left out: 3 uses without a number in 'year'."
    assert [(each.label, each.uses) for each in found.periods] == [
        ("1850–1874", 2),
        ("1875–1899", 1),
    ]
    assert "Under 5 documents in 1850–1874, 1875–1899" in found.notes[-1]
    undated = DatedSenses("bank", "year", ["a", "b"], [None, "?"], ["u", "v"])
    with pytest.raises(InputError, match="None of 2 uses of bank has a number in 'year'"):
        senses_over_time(undated, 2, None)
    with pytest.raises(InputError, match="of one sense, a"):
        senses_over_time(DatedSenses("bank", "year", ["a"], ["1850"], ["u"]), 2, None)


def test_a_period_without_uses_has_no_shares() -> None:
    given = DatedSenses("bank", "year", ["a", "b"], ["1800", "1899"], ["u", "v"])
    found = senses_over_time(given, 4, None)
    assert [len(each.shares) for each in found.periods] == [2, 0, 0, 2]
    assert len([*found.rows()]) == len(found) == 4


def test_a_period_without_texts_is_told_from_one_without_the_word(tmp_path: Path) -> None:
    """Texts of 1800–1809, 1830–1839 (of which none has the word) and 1850–1859; none between."""
    texts = [(f"the {'river' if n % 2 else 'old'} bank .", {"year": 1800 + n}) for n in range(10)]
    texts += [("an oak .", {"year": 1830 + n}) for n in range(10)]
    texts += [(f"the {'river' if n % 2 else 'old'} bank .", {"year": 1850 + n}) for n in range(10)]
    corpus = make_corpus(tmp_path, texts, meta=["year"])
    names = ["river" if n % 2 else "money" for n in range(20)]
    keep_labels(corpus, find_uses(corpus, "bank"), names, {"river": (9, 9)}, Path("bank.csv"))
    out, report = tmp_path / "periods.csv", tmp_path / "bank.html"
    found = polyseme.senses_over_time(corpus, "bank", by="year", periods=6, out=out, report=report)
    assert [each.words for each in found.periods] == [40, 0, 0, 30, 0, 40]
    assert found.notes[-2].startswith("No texts in 1810–1819, 1820–1829, 1840–1849")
    assert found.notes[-1] == "No use of bank in 1830–1839 (30 words of text)."
    told = [each.empty_label for each in found.periods if not each.shares]
    assert told == ["no texts", "no texts", "no uses", "no texts"]
    html = report.read_text("utf-8")
    assert (html.count("no texts<"), html.count("no uses<")) == (3, 1)
    header, first, *_ = out.read_text("utf-8-sig").splitlines()
    ends = [line.split(",")[-1].strip('"') for line in (header, first)]
    assert ends == ["words_in_period", "40"]
    asked = ("change", "bank", "--in", corpus.folder, "--by", "year", "--periods", "6")
    shown = polyseme_command(*asked)
    assert [shown.stdout.count(each) for each in ("no texts", "no uses")] == [3, 1]
    early = polyseme.senses_over_time(
        corpus, "bank", by="year", periods=6, where="year<1820 or year>=1840"
    )
    assert "No use" not in " ".join(early.notes)  # of texts that were not asked about


def test_senses_that_are_kept_need_no_model(tmp_path: Path) -> None:
    texts = [
        (f"the {'river' if n % 3 else 'old'} bank was here .", {"year": 1850 + n})
        for n in range(60)
    ]
    corpus = make_corpus(tmp_path, texts, meta=["year"])
    uses = find_uses(corpus, "bank")
    names = ["river" if n % 3 else "money" for n in range(60)]
    names[7] = ""
    keep_labels(corpus, uses, names, {"river": (30, 30), "money": (30, 30)}, Path("bank.csv"))
    found = polyseme.senses_over_time(corpus, "bank", by="year", periods=3)
    assert found.senses == ("money", "river")
    assert [each.uses for each in found.periods] == [19, 20, 20]
    assert found.notes[:2] == (
        "Senses as they are kept, from bank.csv.",
        "Left out: 1 use in none of them.",
    )
    out, report = tmp_path / "bank.csv", tmp_path / "bank.html"
    polyseme.senses_over_time(corpus, "bank", by="year", out=out, report=report)
    assert len(out.read_text("utf-8-sig").splitlines()) == 1 + 2 * 4
    html = report.read_text("utf-8")
    assert html.count("<path class") == 4  # a line and a band for each sense
    assert "1850–1864" in html
    query = '[word="bank"]'
    keep_labels(corpus, find_uses(corpus, Query.of(cql=query)), names,
                {"river": (30, 30), "money": (30, 30)}, Path("queried.csv"))  # fmt: skip
    found = polyseme.senses_over_time(corpus, cql=query, by="year")
    assert found.notes[0] == "Senses as they are kept, from queried.csv."
    with pytest.raises(PolysemeError, match="no column 'date'"):
        polyseme.senses_over_time(corpus, "bank", by="date")
