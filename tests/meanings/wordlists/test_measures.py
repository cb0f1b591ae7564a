"""Measures against numbers that other programs printed, and that were worked out by hand.

UCS: the toolkit of S. Evert, as distributed with the Python package association-measures (its
`ucs-gold-100.ds`, words around *circular economy* in the window of ten words; MI³ there has
logarithms to base 10). Log ratios: the README of association-measures 0.2.2. CQPweb: the page of
collocates that the same package's tests keep. Intervals: the documentation of
scipy.stats.contingency.relative_risk.
"""

import math

import numpy as np
import pytest

from polyseme.meanings.wordlists.measures import (
    Contingency,
    DocumentCounts,
    log_dice,
    log_ratio_interval,
)

# Word, f, f2, Dice, MI3, log-likelihood (which has the sign of the difference there).
UCS = [
    ("appreciated", 1, 2, 0.000130412102243088, 0.796611250194937, 2.4487567246743),
    ("certain", 7, 120, 0.00090591432638799, 1.55375411985406, -0.829802488929075),
    ("measuring", 1, 8, 0.000130361100247686, 0.194551258866975, 0.191806047478568),
    ("particularly", 2, 47, 0.000260061114361875, 0.328633374915145, -1.05938560388833),
    ("arrived", 2, 5, 0.000260773192515809, 1.30176122851484, 3.87912640510113),
    ("private", 4, 34, 0.000520562207183758, 1.37234230280055, 0.583217966132749),
    ("deciding", 2, 2, 0.000260824204486176, 1.69970123718688, 10.1098895166663),
    ("This", 3, 45, 0.000390142401976722, 0.875792496242562, -0.112564695685161),
    ("will", 52, 658, 0.00650325162581291, 3.42742538314936, -0.00633058968211841),
    ("heard", 5, 38, 0.000650533437418683, 1.61476766225016, 1.17525940894601),
]
WINDOW, WORDS = 15_334, 191_998


def ucs_table() -> Contingency:
    joint = np.array([row[1] for row in UCS], float)
    both = np.array([row[2] for row in UCS], float)
    return Contingency(joint, both - joint, WINDOW, WORDS - WINDOW)


def test_log_likelihood_is_that_of_ucs_to_the_last_digit() -> None:
    found = ucs_table()
    signed = np.where(found.target > found.expected, found.g2, -found.g2)
    # UCS adds terms of 10^5 to one of 10^-3 (*will*), which leaves ten digits after the point.
    assert [round(value, 10) for value in signed] == [round(row[5], 10) for row in UCS]


def test_mi3_is_that_of_ucs_to_the_last_digit() -> None:
    found = ucs_table().mi3 * math.log10(2)
    assert [f"{value:.12f}" for value in found] == [f"{row[4]:.12f}" for row in UCS]


def test_log_dice_is_that_of_the_dice_of_ucs() -> None:
    joint, both = (np.array([row[n] for row in UCS], float) for n in (1, 2))
    found = log_dice(joint, WINDOW, both)
    assert [f"{2 ** (value - 14):.15f}" for value in found] == [f"{row[3]:.15f}" for row in UCS]


def test_log_dice_is_fourteen_where_words_are_always_together_and_falls_by_one_for_half() -> None:
    found = log_dice(np.array([100.0, 50.0]), 100, np.array([100.0, 100.0]))
    assert found.tolist() == [14, 13]


def test_log_ratio_is_that_of_association_measures_to_the_last_digit() -> None:
    printed = ["3.526202", "-0.486622", "0.718847", "-0.965651", "2.941240"]
    assert [f"{value:.6f}" for value in ucs_table().log_ratio[:5]] == printed


def test_log_ratio_is_that_of_cqpweb() -> None:
    """Collocates of *Bundesregierung*: total, observed, Log Ratio. Two roundings are in each."""
    rows = [
        ("eingebracht", 2157, 1189, "7.157"),
        ("Entwurf", 4564, 1178, "5.337"),
        ("Gesetzentwurf", 14608, 1187, "3.361"),
        ("fordern", 13484, 577, "2.377"),
        ("haben", 246290, 3529, "0.756"),
        ("eine", 345582, 3297, "0.162"),
    ]
    # The page does not print the sizes of the windows and of the rest, which all rows share: their
    # ratio is taken from a word that is not among the rows (dass: 2,316 of 174,459, 0.644).
    ratio = 2**0.644 * (174_459 - 2_316) / 2_316
    both, joint = (np.array([row[n] for row in rows], float) for n in (1, 2))
    size = 1_000_000
    found = Contingency(joint, both - joint, size, size * ratio)
    assert found.log_ratio == pytest.approx([float(row[3]) for row in rows], abs=0.0011)


def test_interval_of_one_word_a_document_is_that_of_scipy_to_the_last_digit() -> None:
    """`relative_risk(27, 122, 44, 487)`: 2.4495156482861398, from 1.58… to 3.79…"""
    table = Contingency(np.array([27.0]), np.array([44.0]), 122, 487)
    found = log_ratio_interval(table.log_ratio, table.binomial_variance)
    assert f"{2 ** table.log_ratio[0]:.13f}" == "2.4495156482861"
    ends = [2 ** end[0] for end in found]
    assert ends == pytest.approx([1.5836990926700116, 3.7886786315466354], rel=1e-13)


def test_interval_of_another_table_of_scipy() -> None:
    """`relative_risk(10, 75, 12, 225)`: from 1.1261564003469628 to 5.549850800541033."""
    table = Contingency(np.array([10.0]), np.array([12.0]), 75, 225)
    low, high = log_ratio_interval(table.log_ratio, table.binomial_variance)
    assert 2 ** low[0] == pytest.approx(1.1261564003469628, rel=1e-14)
    assert 2 ** high[0] == pytest.approx(5.549850800541033, rel=1e-14)


def documents_of(target: list[int], reference: list[int], sizes: list[list[int]]) -> DocumentCounts:
    """One word, with its counts in each document."""
    places = np.flatnonzero(np.array(target) + np.array(reference))
    return DocumentCounts(
        np.zeros(len(places), np.int64),
        places,
        np.array(target, float)[places],
        np.array(reference, float)[places],
        *(np.array(each, float) for each in sizes),
    )


def test_the_variance_of_one_word_a_document_is_the_binomial_one() -> None:
    """Then documents are drawn as words are; n / (n - 1) is what a sample's variance has more."""
    target = [1] * 27 + [0] * 95 + [0] * 487
    reference = [0] * 122 + [1] * 44 + [0] * 443
    sizes = [[1] * 122 + [0] * 487, [0] * 122 + [1] * 487]
    found = documents_of(target, reference, sizes).spread(np.array([True]))
    table = Contingency(np.array([27.0]), np.array([44.0]), 122, 487)
    assert found.variance[0] == pytest.approx(table.binomial_variance[0] * 609 / 608, rel=1e-12)


def test_a_ratio_is_less_certain_if_one_document_has_all_of_a_word() -> None:
    sizes = [[100] * 10 + [0] * 10, [0] * 10 + [100] * 10]
    even = documents_of([5] * 10 + [0] * 10, [0] * 10 + [2] * 10, sizes)
    uneven = documents_of([50] + [0] * 19, [0] * 10 + [2] * 10, sizes)
    is_more = np.array([True])
    assert even.spread(is_more).variance[0] == pytest.approx(0, abs=1e-12)
    assert uneven.spread(is_more).variance[0] > 0.5


def test_the_variance_is_that_of_a_jackknife_over_documents() -> None:
    """Another road: the ratio without each document in turn."""
    random = np.random.default_rng(1)
    sizes = random.integers(2_000, 3_000, (2, 300))
    counts = random.binomial(sizes, random.beta(2, 200, (2, 300)))
    target, reference = counts.tolist()
    found = documents_of(target, reference, sizes.tolist()).spread(np.array([True]))
    without = np.log(
        (counts.sum(1, keepdims=True) - counts) / (sizes.sum(1, keepdims=True) - sizes)
    )
    ratios = without[0] - without[1]
    jackknife = 299 / 300 * ((ratios - ratios.mean()) ** 2).sum()
    assert found.variance[0] == pytest.approx(jackknife, rel=0.02)


def test_dispersion_is_gries_dp_of_the_side_where_a_word_is_more_frequent() -> None:
    # Shares of words .5 .3 .2, of the word .25 .75 0: half of (.25 + .45 + .2).
    counts = documents_of([1, 3, 0], [0, 0, 7], [[50, 30, 20], [10, 10, 80]])
    found = counts.spread(np.array([True]))
    assert found.dp[0] == pytest.approx(0.45)
    assert found.num_documents.tolist() == [2]
    found = counts.spread(np.array([False]))
    assert found.dp[0] == pytest.approx(0.2)  # 0 0 1 against .1 .1 .8
    assert found.num_documents.tolist() == [1]


def test_a_word_that_is_as_frequent_in_both_has_no_log_likelihood() -> None:
    found = Contingency(np.array([10.0, 0.0]), np.array([100.0, 0.0]), 1_000, 10_000)
    assert found.g2 == pytest.approx([0, 0], abs=1e-9)
    assert found.log_ratio[0] == 0


def test_a_word_that_one_side_does_not_have_counts_there_as_half() -> None:
    found = Contingency(np.array([8.0]), np.array([0.0]), 1_000, 1_000)
    assert found.log_ratio.tolist() == [4]
