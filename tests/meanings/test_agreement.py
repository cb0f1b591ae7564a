"""Krippendorff's alpha against what others published, and what must hold of it."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.meanings.agreement import (
    Counts,
    Level,
    disputes,
    estimate_alpha,
    estimate_mean,
    krippendorff_alpha,
)

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": four observers, twelve units,
# five values; 0 stands for a missing one.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]
PUBLISHED = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}
# How many gave the values 1, 2, 3, 4; and what the package krippendorff 0.9.0 gives for it.
SPARSE = [[2, 0, 1, 0], [0, 3, 0, 0], [1, 1, 0, 1], [0, 0, 2, 1], [0, 0, 0, 2], [1, 0, 0, 0]]


def counted(observers: list[list[int]], num_values: int) -> Counts:
    rows = np.array(observers).T
    return np.stack([(rows == value).sum(axis=1) for value in range(1, num_values + 1)], axis=1)


@pytest.mark.parametrize("level", LEVELS)
def test_the_example_of_krippendorff_comes_out_to_its_last_digit(level: Level) -> None:
    assert round(krippendorff_alpha(counted(OBSERVERS, 5), level), 3) == PUBLISHED[level]


PACKAGE = {
    "nominal": 0.376712328767,
    "ordinal": 0.360655737705,
    "interval": 0.360655737705,
    "ratio": 0.298506226779,
}


@pytest.mark.parametrize("level", LEVELS)
def test_it_is_what_the_package_of_its_name_gives(level: Level) -> None:
    assert krippendorff_alpha(np.array(SPARSE), level) == pytest.approx(PACKAGE[level], abs=1e-9)


def by_definition(counts: Counts, level: Level) -> float:
    """The same from lists of values, two by two."""
    units = [np.repeat(np.arange(1, len(row) + 1), row).tolist() for row in counts]
    units = [unit for unit in units if len(unit) > 1]
    every = sorted(value for unit in units for value in unit)

    def apart(one: int, two: int) -> float:
        match level:
            case "nominal":
                return float(one != two)
            case "ordinal":
                low, high = sorted((one, two))
                between = sum(low <= value <= high for value in every)
                return (between - (every.count(low) + every.count(high)) / 2) ** 2
            case "interval":
                return (one - two) ** 2
            case "ratio":
                return ((one - two) / (one + two)) ** 2

    within = sum(
        apart(one, two) / (len(unit) - 1)
        for unit in units
        for i, one in enumerate(unit)
        for j, two in enumerate(unit)
        if i != j
    ) / len(every)
    chance = sum(apart(one, two) for one in every for two in every)
    return 1 - within / (chance / (len(every) * (len(every) - 1)))


tables = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=12).map(
    np.array
)


def has_differences(counts: Counts) -> bool:
    judged = counts[counts.sum(axis=1) > 1]
    return int((judged.sum(axis=0) > 0).sum()) > 1


@settings(deadline=None, max_examples=50)
@given(tables, st.sampled_from(LEVELS))
def test_it_is_as_defined(counts: Counts, level: Level) -> None:
    alpha = krippendorff_alpha(counts, level)
    if has_differences(counts):
        assert alpha == pytest.approx(by_definition(counts, level), abs=1e-9)
    else:
        assert math.isnan(alpha)


@settings(deadline=None, max_examples=15)
@given(tables, st.sampled_from(LEVELS), st.randoms())
def test_the_order_of_items_does_not_matter(counts: Counts, level: Level, random: Random) -> None:
    rows = [*range(len(counts))]
    random.shuffle(rows)
    before, after = (estimate_alpha(each, level) for each in (counts, counts[rows]))
    figures = before.value, before.low, before.high
    assert (after.value, after.low, after.high) == pytest.approx(figures, nan_ok=True)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=30), st.integers(2, 5))
def test_perfect_agreement_is_one(values: list[int], judges: int) -> None:
    counts = np.zeros((len(values), 4), np.int64)
    counts[range(len(values)), values] = judges
    for level in LEVELS:
        alpha = krippendorff_alpha(counts, level)
        assert alpha == 1 if len(set(values)) > 1 else math.isnan(alpha)
    assert not disputes(counts, "ordinal").any()


def test_shuffled_judgments_agree_as_by_chance() -> None:
    random = np.random.default_rng(1)
    judged = [random.permutation(np.repeat([1, 2, 3, 4], [900, 500, 300, 300])) for _ in range(3)]
    for level in LEVELS:
        found = estimate_alpha(counted([row.tolist() for row in judged], 4), level)
        assert abs(found.value) < 0.03
        assert found.low < 0 < found.high


def test_the_interval_has_the_true_value_as_often_as_it_says() -> None:
    random, hits = np.random.default_rng(2), 0
    # Two judges, each right with probability 0.8, else one of four at random.
    many = _judged(random, 200_000)
    true = krippendorff_alpha(many)
    for _ in range(100):
        found = estimate_alpha(_judged(random, 120))
        hits += found.low <= true <= found.high
    assert 88 <= hits <= 99


def _judged(random: np.random.Generator, number: int) -> Counts:
    truth = random.integers(1, 5, number)
    seen = [
        np.where(random.random(number) < 0.8, truth, random.integers(1, 5, number))
        for _ in range(2)
    ]
    return counted([each.tolist() for each in seen], 4)


def test_four_times_the_items_halve_the_interval() -> None:
    random = np.random.default_rng(3)
    few = estimate_alpha(_judged(random, 400))
    wanted = few.items_for(few.half_width / 2)
    assert wanted == pytest.approx(1_600, abs=1)
    assert estimate_alpha(_judged(random, 1_600)).half_width == pytest.approx(
        few.half_width / 2, rel=0.2
    )


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    values = np.random.default_rng(4).integers(1, 5, 500).tolist()
    found = estimate_mean(values)
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert found.half_width == pytest.approx(1.96 * error, rel=0.1)


def test_of_nothing_there_is_no_figure() -> None:
    found = estimate_alpha(np.array([[1, 0], [0, 1]]))
    assert math.isnan(found.value)
    assert found.to_json() == {"value": None, "low": None, "high": None, "items": 0}
    assert found.items_for(0.1) is None


def test_items_whose_judgments_are_farthest_apart_are_most_in_dispute() -> None:
    found = disputes(np.array([[1, 0, 0, 1], [1, 1, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0]]), "ordinal")
    assert found[0] > found[1] > found[2] == found[3] == 0
