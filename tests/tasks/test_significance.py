"""The paired bootstrap: sure where it can be, unsure where it must be, right on average."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from polyseme.errors import InputError
from polyseme.tasks.measures import (
    LABEL_MEASURES,
    Counts,
    ExampleScores,
    Values,
    count_labels,
    count_tags,
    value_of,
)
from polyseme.tasks.significance import compare


def make_system(gold: list[str], *, skill: float, seed: int) -> Counts:
    """Right with probability `skill`, otherwise at random."""
    generator = np.random.default_rng(seed)
    guesses = generator.choice(list("abc"), size=len(gold)).tolist()
    knows = generator.random(len(gold)) < skill
    predicted = [d if yes else g for d, g, yes in zip(gold, guesses, knows, strict=True)]
    return count_labels(gold, predicted)


def make_gold(size: int, seed: int = 0) -> list[str]:
    return [str(label) for label in np.random.default_rng(seed).choice(list("abc"), size=size)]


@pytest.mark.parametrize("measure", LABEL_MEASURES)
def test_a_system_is_no_better_than_itself(measure: str) -> None:
    counts = make_system(make_gold(100), skill=0.5, seed=1)
    result = compare(counts, counts, measure=measure, resamples=200)
    assert result.p_value == 1.0
    assert (result.low, result.difference, result.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("measure", LABEL_MEASURES)
def test_a_clearly_better_system_is_found_out_either_way_round(measure: str) -> None:
    gold = make_gold(300)
    worse, better = make_system(gold, skill=0.4, seed=1), make_system(gold, skill=0.8, seed=2)
    result = compare(worse, better, measure=measure, resamples=1000)
    assert result.p_value < 0.01
    assert 0 < result.low < result.difference < result.high
    turned = compare(better, worse, measure=measure, resamples=1000)
    assert turned.p_value < 0.01
    assert turned.low == pytest.approx(-result.high)
    assert result.difference == better.value(measure) - worse.value(measure)


def test_equals_are_called_different_as_often_as_promised() -> None:
    """200 pairs of equally good systems: p below 0.05 for about 10 of them, 0.5 on average."""
    p_values = []
    for seed in range(200):
        gold = make_gold(150, seed)
        one = make_system(gold, skill=0.6, seed=1000 + seed)
        other = make_system(gold, skill=0.6, seed=2000 + seed)
        p_values.append(compare(one, other, measure="accuracy", resamples=400).p_value)
    # Binomial(200, 0.05) is between 2 and 20 in 998 of 1,000 worlds.
    assert 2 <= sum(p < 0.05 for p in p_values) <= 20
    assert 0.42 < np.mean(p_values) < 0.58


def test_the_interval_holds_the_true_difference_as_often_as_promised() -> None:
    """Guessing is right in a third of cases, so skills 0.5 and 0.7 differ by 0.2 x 2/3."""
    held = 0
    for seed in range(200):
        gold = make_gold(150, seed)
        one = make_system(gold, skill=0.5, seed=1000 + seed)
        other = make_system(gold, skill=0.7, seed=2000 + seed)
        result = compare(one, other, measure="accuracy", resamples=400)
        held += result.low <= 0.2 * 2 / 3 <= result.high
    assert 178 <= held <= 199


def test_p_and_interval_are_those_of_drawing_one_by_one() -> None:
    gold = make_gold(60)
    one, other = make_system(gold, skill=0.5, seed=1), make_system(gold, skill=0.6, seed=2)
    result = compare(one, other, measure="macro-f1", resamples=4000, seed=1)
    generator = np.random.default_rng(99)
    differences = []
    for _ in range(4000):
        chosen = generator.integers(60, size=60)
        values = [value_of(t.counts[chosen].sum(axis=0), "macro-f1") for t in (one, other)]
        differences.append(float(values[1] - values[0]))
    observed = result.difference
    p = np.mean([abs(d - observed) >= abs(observed) for d in differences])
    assert result.p_value == pytest.approx(p, abs=0.04)
    assert result.low == pytest.approx(np.quantile(differences, 0.025), abs=0.02)
    assert result.high == pytest.approx(np.quantile(differences, 0.975), abs=0.02)


def test_the_same_seed_gives_the_same_numbers_and_another_does_not() -> None:
    gold = make_gold(80)
    one, other = make_system(gold, skill=0.5, seed=1), make_system(gold, skill=0.6, seed=2)
    first = compare(one, other, measure="f1", resamples=300, seed=7)
    assert first == compare(one, other, measure="f1", resamples=300, seed=7)
    assert first != compare(one, other, measure="f1", resamples=300, seed=8)


def test_memory_bound_parts_draw_the_same_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = make_gold(80)
    one, other = make_system(gold, skill=0.5, seed=1), make_system(gold, skill=0.6, seed=2)
    whole = compare(one, other, measure="macro-f1", resamples=301)
    monkeypatch.setattr("polyseme.tasks.significance._ROOM", 80 * 7)
    assert compare(one, other, measure="macro-f1", resamples=301) == whole


def test_examples_of_one_sentence_are_drawn_together() -> None:
    """Each example ten times over is no more evidence than once."""
    gold = make_gold(60)
    one, other = make_system(gold, skill=0.5, seed=1), make_system(gold, skill=0.7, seed=2)
    tenfold = [Counts(t.labels, np.repeat(t.counts, 10, axis=0)) for t in (one, other)]
    groups = [f"sentence {i // 10}" for i in range(600)]
    once = compare(one, other, measure="accuracy", resamples=1000)
    together = compare(*tenfold, measure="accuracy", resamples=1000, groups=groups)
    assert together == once
    apart = compare(*tenfold, measure="accuracy", resamples=1000)
    assert apart.high - apart.low < 0.5 * (once.high - once.low)


def test_systems_that_saw_different_examples_are_not_compared() -> None:
    one = count_tags([["a", "b"], ["a"]], [["a", "b"], ["a"]])
    other = count_tags([["a"], ["a", "b"]], [["a"], ["a", "b"]])
    with pytest.raises(InputError, match="same examples"):
        compare(one, other, measure="accuracy")


def test_ten_thousand_draws_of_a_usual_test_set_take_seconds() -> None:
    gold = make_gold(3000)
    one, other = make_system(gold, skill=0.5, seed=1), make_system(gold, skill=0.6, seed=2)
    begin = time.perf_counter()
    compare(one, other, measure="macro-f1", resamples=10_000)
    assert time.perf_counter() - begin < 20  # half a second on a free machine


class Means(ExampleScores):
    """A measure that is no count of labels: the mean of one value for each example."""

    def __init__(self, values: list[float]) -> None:
        self.values = np.array(values)

    def __len__(self) -> int:
        return len(self.values)

    def statistics(self, _measure: str) -> Values:
        return np.stack([self.values, np.ones(len(self))], axis=1)

    def value_of(self, sums: Values, _measure: str) -> Values:
        return sums[:, 0] / sums[:, 1]

    def concat(self, others: Sequence["Means"]) -> "Means":
        return Means(np.concatenate([self.values, *(each.values for each in others)]).tolist())


def test_any_scores_that_add_up_can_be_compared() -> None:
    gold = make_gold(200)
    systems = [make_system(gold, skill=skill, seed=1) for skill in (0.5, 0.8)]
    by_counts = compare(*systems, measure="accuracy", resamples=500)
    right = [Means(each.counts[:, 0].sum(axis=1).astype(float).tolist()) for each in systems]
    by_means = compare(*right, measure="anything", resamples=500)
    assert by_means == replace(by_counts, measure="anything")
    with pytest.raises(InputError, match="same examples"):
        compare(right[0], right[1].concat([right[0]]), measure="anything")
