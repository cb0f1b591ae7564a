"""Measures against scikit-learn, and small cases counted by hand.

What was taken for what.

The paired bootstrap: sure where it can be, unsure where it must be, right on average.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required import need_package

from polyseme.errors import InputError
from polyseme.tasks import measures as confusion_file
from polyseme.tasks.measures import (
    LABEL_MEASURES,
    Counts,
    ExampleScores,
    LabelScore,
    Values,
    compare,
    confusion,
    count_labels,
    count_spans,
    count_tags,
    draw_confusion,
    value_of,
)

answers = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1)


@pytest.fixture(scope="module")
def sklearn_metrics() -> Any:
    return need_package("sklearn.metrics")


@settings(deadline=None)
@given(pairs=answers)
def test_accuracy_f1_and_the_table_of_labels_are_those_of_sklearn(
    pairs: list[tuple[str, str]], sklearn_metrics: Any
) -> None:
    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    counts = count_labels(gold, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn_metrics.classification_report(
            gold, predicted, output_dict=True, zero_division=0
        )
    accuracy = sklearn_metrics.accuracy_score(gold, predicted)
    macro = sklearn_metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    assert counts.value("accuracy") == pytest.approx(accuracy)
    assert counts.value("macro-f1") == pytest.approx(macro)
    for row in counts.by_label():
        expected = theirs[row.label]
        assert row.precision == pytest.approx(expected["precision"])
        assert row.recall == pytest.approx(expected["recall"])
        assert row.f1 == pytest.approx(expected["f1-score"])
        assert (row.gold, row.predicted) == (expected["support"], predicted.count(row.label))


def test_words_count_one_by_one_however_sentences_are_cut() -> None:
    random = Random(5)
    gold = [[random.choice("ab") for _ in range(random.randint(1, 9))] for _ in range(50)]
    predicted = [[random.choice("abc") for _ in labels] for labels in gold]
    all_gold, all_predicted = list(chain(*gold)), list(chain(*predicted))
    one_sentence = count_tags([all_gold], [all_predicted])
    counts = count_tags(gold, predicted)
    right = sum(a == b for a, b in zip(all_gold, all_predicted, strict=True))
    assert counts.value("accuracy") == pytest.approx(right / len(all_gold))
    assert counts.value("macro-f1") == pytest.approx(one_sentence.value("macro-f1"))


def test_a_span_is_right_only_with_both_ends_and_its_kind() -> None:
    counts = count_spans([["B-X", "I-X", "O", "B-Y"]], [["B-X", "O", "O", "B-X"]])
    assert counts.by_label() == [
        LabelScore("X", 0.0, 0.0, 0.0, gold=1, predicted=2),
        LabelScore("Y", 0.0, 0.0, 0.0, gold=1, predicted=0),
    ]
    nothing = count_spans([["O", "O"]], [["O", "O"]])
    for measure in ("precision", "recall", "f1", "macro-f1"):
        assert counts.value(measure) == nothing.value(measure) == 0.0
    # Another scheme means the same spans; a predicate that is given counts for nothing.
    assert count_spans([["B-X", "I-X", "B-X"]], [["B-X", "E-X", "S-X"]]).value("f1") == 1.0
    roles = [["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]], [["B-ARG0", "B-V", "B-ARG1", "O"]]
    assert count_spans(*roles).value("f1") == pytest.approx(2 / 3)
    assert count_spans(*roles, ignore_labels={"V"}).value("f1") == pytest.approx(1 / 2)
    assert confusion("aab", "abb") == {("a", "a"): 1, ("a", "b"): 1, ("b", "b"): 1}
    with pytest.raises(ValueError, match="zip"):
        count_labels(["a"], ["a", "b"])


def test_many_totals_at_once_give_each_its_value() -> None:
    totals = np.random.default_rng(0).integers(0, 9, size=(7, 5, 3, 4))
    for i in range(7):
        for j in range(5):
            assert value_of(totals, "macro-f1")[i, j] == value_of(totals[i, j], "macro-f1")
            assert value_of(totals, "f1")[i, j] == value_of(totals[i, j], "f1")


def test_a_label_that_does_not_occur_changes_no_mean(sklearn_metrics: Any) -> None:
    """As in a resample without a rare label: its F1 is not 0, there is none."""
    gold, predicted = list("aabbc"), list("abbba")
    counts = count_labels(gold, predicted).counts
    for chosen in ([0, 1], [2, 3], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        some = [gold[n] for n in chosen], [predicted[n] for n in chosen]
        expected = sklearn_metrics.f1_score(*some, average="macro", zero_division=0)
        assert value_of(counts[chosen].sum(axis=0), "macro-f1") == pytest.approx(expected)


def test_counts_together_count_what_each_counted() -> None:
    first = count_labels(["a", "b"], ["a", "a"])
    second = count_labels(["c", "a", "a"], ["c", "a", "b"])
    both = first.concat([second])
    whole = count_labels(["a", "b", "c", "a", "a"], ["a", "a", "c", "a", "b"])
    assert both.labels == whole.labels
    assert (both.counts == whole.counts).all()


def test_rare_labels_are_drawn_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {}

    def draw(path: Path, counts: dict[tuple[str, str], int]) -> list[str]:
        drawn[path.name] = counts
        return []

    monkeypatch.setattr(confusion_file, "_draw", draw)
    often = [f"label{number}" for number in range(24)] * 2
    draw_confusion(tmp_path, [*often, "rare", "rarer"], [*often, "rare", "label3"])
    counts = drawn["confusion.png"]
    assert counts["others", "others"] == 1
    assert counts["others", "label3"] == 1
    assert counts["label3", "label3"] == 2


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


def test_memory_bound_parts_draw_the_same_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = make_gold(80)
    one, other = make_system(gold, skill=0.5, seed=1), make_system(gold, skill=0.6, seed=2)
    whole = compare(one, other, measure="macro-f1", resamples=301)
    assert compare(one, other, measure="macro-f1", resamples=301, seed=8) != whole
    monkeypatch.setattr("polyseme.tasks.measures._ROOM", 80 * 7)
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
