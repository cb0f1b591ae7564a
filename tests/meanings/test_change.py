"""Change between two sides: distances by brute force, the test's error rates, the controls."""

import json
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import kstest
from slack import allowed

from polyseme.meanings.change.measure import (
    MAX_USES,
    Side,
    Unit,
    benjamini_hochberg,
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


def test_a_planted_shift_is_found() -> None:
    found = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        before, after = (Side(two_senses(generator, share)) for share in (0.3, 0.7))
        found.append(measure_change(before, after, permutations=199).p_value)
    assert max(found) < 0.05


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
