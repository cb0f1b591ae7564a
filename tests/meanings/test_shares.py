"""Shares of groups: divergence, intervals, which groups moved."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import binomtest

from polyseme.meanings.change.measure import (
    compare_shares,
    design_effect,
    effective_number,
    jensen_shannon,
)


def movements(before: str, after: str) -> dict[str, str]:
    return {each.group: each.movement for each in compare_shares(before, after)}


def test_groups_on_one_side_only_diverge_by_one_bit_and_equal_ones_by_none() -> None:
    assert jensen_shannon(compare_shares("aab", "cdd")) == pytest.approx(1.0, abs=1e-12)
    assert jensen_shannon(compare_shares("aab" * 7, "aab" * 3)) == 0.0


def test_the_divergence_is_that_of_scipy() -> None:
    shares = compare_shares("aaaabbc", "abbbbbdd")
    expected = jensenshannon([4 / 7, 2 / 7, 1 / 7, 0], [1 / 8, 5 / 8, 0, 2 / 8], base=2) ** 2
    assert jensen_shannon(shares) == pytest.approx(expected)


def test_an_interval_is_wilsons_if_documents_are_not_given() -> None:
    [share] = [each.before for each in compare_shares("a" * 7 + "b" * 23, "b") if each.group == "a"]
    expected = binomtest(7, 30).proportion_ci(method="wilson")
    assert (share.low, share.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_interval_of_a_difference_is_newcombes() -> None:
    # Newcombe (1998), Statistics in Medicine 17, table II, method 10: 56/70 less 48/80.
    [found] = [
        each
        for each in compare_shares("a" * 48 + "b" * 32, "a" * 56 + "b" * 14)
        if each.group == "a"
    ]
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_uses_of_one_document_count_as_one() -> None:
    assert effective_number([1] * 30) == pytest.approx(30)
    assert effective_number([10, 10, 10]) == pytest.approx(3)
    assert effective_number([28, 1, 1]) < 1.2
    groups = "a" * 10 + "b" * 20
    documents = [number // 10 for number in range(30)]
    wide = compare_shares(groups, groups, (documents, documents))[0].before
    narrow = compare_shares(groups, groups)[0].before
    expected = binomtest(1, 3).proportion_ci(method="wilson")
    assert (wide.low, wide.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_groups_that_moved_are_told_apart() -> None:
    before = "a" * 50 + "b" * 30 + "c" * 20 + "e"
    after = "a" * 20 + "b" * 55 + "d" * 25 + "e"
    assert movements(before, after) == {
        "a": "shrank", "b": "grew", "c": "vanished", "d": "appeared", "e": "unclear",
    }  # fmt: skip


def test_those_that_moved_furthest_come_first() -> None:
    found = compare_shares("aaabbbbbcc", "aaaaaaaabc")
    assert [each.group for each in found] == ["a", "b", "c"]


def test_of_equal_sides_about_one_interval_in_twenty_is_without_zero() -> None:
    generator = np.random.default_rng(0)
    sides = generator.random((500, 2, 80)) < 0.3
    moved = [compare_shares(*pair)[0].movement != "unclear" for pair in sides.tolist()]
    assert 0.02 <= np.mean(moved) <= 0.08


def test_documents_whose_uses_do_not_agree_cost_nothing() -> None:
    generator = np.random.default_rng(3)
    groups = ["a" if each else "b" for each in generator.random(200) < 0.4]
    documents = [number % 10 for number in range(200)]
    assert design_effect("a", [groups, groups], (documents, documents)) < 1.6
    wide = compare_shares(groups, groups, (documents, documents))[0].before
    narrow = compare_shares(groups, groups)[0].before
    assert wide.high - wide.low < 1.3 * (narrow.high - narrow.low)


def test_where_documents_differ_few_shares_are_said_to_move_by_chance() -> None:
    generator = np.random.default_rng(1)
    names = np.repeat(np.arange(20), 8).tolist()

    def moved(*, by_document: bool) -> bool:
        before, after = (
            (generator.random(160) < np.repeat(generator.beta(2, 3, 20), 8)).tolist()
            for _ in range(2)
        )
        documents = (names, names) if by_document else None
        return compare_shares(before, after, documents)[0].movement != "unclear"

    assert np.mean([moved(by_document=True) for _ in range(400)]) <= 0.08
    assert np.mean([moved(by_document=False) for _ in range(400)]) > 0.12
