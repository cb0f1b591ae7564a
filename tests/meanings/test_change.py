"""Change between two sides: distances by brute force, the test's error rates, the controls.

Shares of groups: divergence, intervals, which groups moved.
"""

import json
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import cdist, jensenshannon
from scipy.stats import binomtest, kstest
from slack import allowed

from polyseme.meanings.change.measure import (
    MAX_USES,
    Side,
    Unit,
    benjamini_hochberg,
    compare_shares,
    design_effect,
    effective_number,
    jensen_shannon,
    measure_change,
)

Values = npt.NDArray[np.float64]


def unit_length(features: Values) -> Values:
    lengths: Values = np.linalg.norm(features, axis=1, keepdims=True)
    return features / lengths


def some(number: int, seed: int = 0, dim: int = 16) -> Values:
    return unit_length(np.random.default_rng(seed).normal(size=(number, dim)) + 0.3)


def one_sense(seed: int, *, effect: float) -> tuple[Side, Side]:
    """Two sides of 12 documents with 5 uses each; each document has a style of its own."""
    generator = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        documents = np.repeat(np.arange(12), 5)
        style = generator.normal(size=(12, 16)) * effect
        uses = 0.5 + style[documents] + generator.normal(size=(60, 16))
        sides.append(Side(unit_length(uses), documents.tolist()))
    return sides[0], sides[1]


def two_senses(generator: np.random.Generator, share: float, uses: int = 100) -> Values:
    """`share` of the uses have the second sense."""
    centres = np.zeros((2, 32))
    centres[0, :4] = centres[1, 4:8] = 1.0
    sense = (np.arange(uses) < share * uses).astype(int)
    return unit_length(centres[sense] + generator.normal(size=(uses, 32)) * 0.5)


def p_values(seeds: int, *, effect: float, unit: Unit) -> list[float]:
    return [
        measure_change(
            *one_sense(seed, effect=effect), unit=unit, permutations=199, seed=seed
        ).p_value
        for seed in range(seeds)
    ]


def test_apd_and_prt_are_those_of_all_pairs_one_by_one() -> None:
    first, second = some(13), some(29, seed=1)
    found = measure_change(Side(first), Side(second), permutations=9)
    assert found.apd == pytest.approx(cdist(first, second, "cosine").mean(), abs=1e-12)
    means = [side.mean(axis=0, keepdims=True) for side in (first, second)]
    assert found.prt == pytest.approx(cdist(*means, "cosine")[0, 0], abs=1e-12)
    inside = cdist(first, first, "cosine")[np.triu_indices(13, k=1)]
    assert found.before.distance_within == pytest.approx(inside.mean(), abs=1e-12)


@pytest.mark.parametrize("unit", ["uses", "documents"])
def test_the_p_value_is_that_of_shuffles_measured_one_by_one(unit: Unit) -> None:
    first, second = one_sense(3, effect=0.5)
    found = measure_change(first, second, unit=unit, permutations=999).p_value
    pool = np.concatenate([first.features, second.features])
    documents = np.arange(120) if unit == "uses" else np.repeat(np.arange(24), 5)
    number = documents.max() + 1
    generator = np.random.default_rng(77)

    def apart(is_first: npt.NDArray[np.bool_]) -> float:
        one, two = pool[is_first], pool[~is_first]
        across, *inside = (
            (cdist(*pair) ** 2).mean() for pair in ((one, two), (one, one), (two, two))
        )
        return float(across - sum(inside) / 2)

    observed = apart(np.arange(120) < 60)
    draws = [np.isin(documents, generator.permutation(number)[: number // 2]) for _ in range(999)]
    expected = np.mean([apart(draw) >= observed for draw in draws])
    # Two estimates from 999 draws each: within four standard errors.
    assert found == pytest.approx(expected, abs=4 * np.sqrt(2 * expected * (1 - expected) / 999))


@pytest.mark.parametrize("sizes", [(40, 40), (30, 50), (50, 30), (MAX_USES + 5, MAX_USES + 9)])
def test_the_sides_may_be_swapped(sizes: tuple[int, int]) -> None:
    sides = [
        Side(
            some(size, seed=number),
            [index % 7 for index in range(size)],
            ["a", "b"] * (size // 2) + ["c"] * (size % 2),
        )
        for number, size in enumerate(sizes)
    ]
    forward = measure_change(sides[0], sides[1], permutations=49)
    backward = measure_change(sides[1], sides[0], permutations=49)
    groups = {each.group: each for each in forward.groups}
    for each in backward.groups:
        assert (each.before, each.after) == (groups[each.group].after, groups[each.group].before)
        assert each.difference == -groups[each.group].difference
    turned = replace(forward, before=forward.after, after=forward.before, groups=())
    assert turned == replace(backward, groups=())


def test_without_change_p_values_are_uniform_if_documents_are_shuffled() -> None:
    assert kstest(p_values(200, effect=0.6, unit="documents"), "uniform").pvalue > 0.01
    assert kstest(p_values(200, effect=0.0, unit="uses"), "uniform").pvalue > 0.01


def test_style_is_taken_for_change_if_uses_are_shuffled_and_not_if_documents_are() -> None:
    by_uses = np.mean(np.array(p_values(400, effect=0.6, unit="uses")) < 0.05)
    by_documents = np.mean(np.array(p_values(400, effect=0.6, unit="documents")) < 0.05)
    assert by_uses > 0.3
    assert by_documents <= 0.07


def test_a_planted_shift_is_found_between_sides_of_unequal_size() -> None:
    found = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        before, after = two_senses(generator, 0.3, 400), two_senses(generator, 0.5, 50)
        # With a part that all uses share, a test of APD itself finds 0.35 of these.
        sides = (Side(unit_length(side + 0.3)) for side in (before, after))
        found.append(measure_change(*sides, permutations=199).p_value)
    assert np.mean(np.array(found) < 0.05) > 0.7


def test_no_p_value_is_zero_and_equal_sides_have_one() -> None:
    far = Side(np.eye(8)[[0] * 20]), Side(np.eye(8)[[1] * 20])
    assert measure_change(*far, permutations=99).p_value == 1 / 100
    assert measure_change(far[0], far[0], permutations=99).p_value == 1.0


def test_the_interval_has_the_true_distance_in_most_samples() -> None:
    generator = np.random.default_rng(0)
    true = measure_change(
        *(Side(two_senses(generator, share, 1000)) for share in (0.2, 0.5)), permutations=9
    ).apd
    hits = 0
    for _ in range(100):
        sense = [generator.random(60) < share for share in (0.2, 0.5)]
        sides = [
            np.where(own[:, None], two_senses(generator, 1.0, 60), two_senses(generator, 0.0, 60))
            for own in sense
        ]
        found = measure_change(*map(Side, sides), permutations=199)
        hits += found.apd_low <= true <= found.apd_high
    assert 85 <= hits <= 99


@pytest.mark.parametrize(
    ("documents", "expected"), [(None, "uses"), (4, "uses"), (5, "documents"), (20, "documents")]
)
def test_documents_are_shuffled_if_each_side_has_five(documents: int | None, expected: str) -> None:
    own = None if documents is None else [index % documents for index in range(20)]
    other = None if documents is None else list(range(20))
    found = measure_change(Side(some(20), own), Side(some(20, 1), other), permutations=9)
    assert found.unit == expected


def test_documents_of_two_sides_are_different_even_if_named_alike() -> None:
    names = [index % 5 for index in range(20)]
    alike = measure_change(Side(some(20), names), Side(some(20, 1), names))
    others = [f"other {name}" for name in names]
    assert alike == measure_change(Side(some(20), names), Side(some(20, 1), others))


def test_of_many_uses_a_sample_is_compared_and_the_result_says_so() -> None:
    found = measure_change(Side(some(1200)), Side(some(40, 1)), permutations=9)
    assert (found.before.uses, found.before.compared) == (1200, 1000)
    assert (found.after.uses, found.after.compared) == (40, 40)
    assert "1,000 of them compared" in found._repr_html_()


def test_groups_of_all_uses_are_counted_though_a_sample_is_compared() -> None:
    groups = ["a"] * 1100 + ["b"] * 100
    found = measure_change(
        Side(some(1200), None, groups), Side(some(4, 1), None, "aaab"), permutations=9
    )
    assert found.groups[0].before.count + found.groups[1].before.count == 1200


def test_a_result_is_plain_json_and_a_page_that_obeys_no_label() -> None:
    hostile = "<script>alert(1)</script>"
    sides = Side(some(9), None, [hostile] * 9), Side(some(9, 1), None, ["b"] * 9)
    found = measure_change(*sides, permutations=9)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["jsd"] == 1.0
    assert {each["movement"] for each in told["groups"]} == {"appeared", "vanished"}
    assert "<script>" not in found._repr_html_()
    assert "JSD 1.000 bits" in repr(found)


def test_a_thousand_permutations_of_a_thousand_uses_take_less_than_a_second() -> None:
    sides = Side(some(500, dim=256)), Side(some(500, 1, dim=256))
    measure_change(*sides, permutations=9)
    times = []
    for _ in range(3):
        begin = time.process_time()
        measure_change(*sides, permutations=999)
        times.append(time.process_time() - begin)
    assert min(times) < allowed(1.0)


def test_p_values_of_many_words_are_adjusted_as_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.5 times 4/1, 4/2, 4/3, 4/4, then the least from the right.
    assert benjamini_hochberg([0.02, 0.5, 0.01, 0.03]) == pytest.approx([0.04, 0.5, 0.04, 0.04])
    assert benjamini_hochberg([]) == []


def movements(before: str, after: str) -> dict[str, str]:
    return {each.group: each.movement for each in compare_shares(before, after)}


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
