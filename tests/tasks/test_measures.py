"""Measures against scikit-learn, and small cases counted by hand."""

import warnings
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required import need_package

from polyseme.tasks.measures import (
    LabelScore,
    count_labels,
    count_spans,
    count_tags,
    value_of,
)

answers = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1)


@pytest.fixture(scope="module")
def sklearn_metrics() -> Any:
    return need_package("sklearn.metrics")


@settings(deadline=None)
@given(pairs=answers)
def test_accuracy_and_macro_f1_are_those_of_sklearn(
    pairs: list[tuple[str, str]], sklearn_metrics: Any
) -> None:
    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    counts = count_labels(gold, predicted)
    accuracy = sklearn_metrics.accuracy_score(gold, predicted)
    macro = sklearn_metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    assert counts.value("accuracy") == pytest.approx(accuracy)
    assert counts.value("macro-f1") == pytest.approx(macro)


@settings(deadline=None)
@given(pairs=answers)
def test_the_table_of_labels_is_that_of_sklearn(
    pairs: list[tuple[str, str]], sklearn_metrics: Any
) -> None:
    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    table = count_labels(gold, predicted).by_label()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn_metrics.classification_report(
            gold, predicted, output_dict=True, zero_division=0
        )
    for row in table:
        expected = theirs[row.label]
        assert row.precision == pytest.approx(expected["precision"])
        assert row.recall == pytest.approx(expected["recall"])
        assert row.f1 == pytest.approx(expected["f1-score"])
        assert row.gold == expected["support"]
        assert row.predicted == predicted.count(row.label)


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
    gold = [["B-X", "I-X", "O", "B-Y"]]
    predicted = [["B-X", "O", "O", "B-X"]]
    counts = count_spans(gold, predicted)
    assert counts.value("f1") == 0.0
    assert counts.by_label() == [
        LabelScore("X", 0.0, 0.0, 0.0, gold=1, predicted=2),
        LabelScore("Y", 0.0, 0.0, 0.0, gold=1, predicted=0),
    ]


def test_the_predicate_that_is_given_counts_for_nothing() -> None:
    gold = [["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]]
    predicted = [["B-ARG0", "B-V", "B-ARG1", "O"]]
    assert count_spans(gold, predicted).value("f1") == pytest.approx(2 / 3)
    assert count_spans(gold, predicted, ignore_labels={"V"}).value("f1") == pytest.approx(1 / 2)


def test_labels_in_another_scheme_are_the_same_spans() -> None:
    bio, bioes = [["B-X", "I-X", "B-X"]], [["B-X", "E-X", "S-X"]]
    assert count_spans(bio, bioes).value("f1") == 1.0


def test_nothing_gold_and_nothing_predicted_is_zero_and_no_error() -> None:
    counts = count_spans([["O", "O"]], [["O", "O"]])
    values = [counts.value("precision"), counts.value("recall"), counts.value("f1")]
    assert [*values, counts.value("macro-f1")] == [0.0, 0.0, 0.0, 0.0]


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


def test_gold_labels_and_predictions_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        count_labels(["a"], ["a", "b"])


def test_counts_together_count_what_each_counted() -> None:
    first = count_labels(["a", "b"], ["a", "a"])
    second = count_labels(["c", "a", "a"], ["c", "a", "b"])
    both = first.concat([second])
    whole = count_labels(["a", "b", "c", "a", "a"], ["a", "a", "c", "a", "b"])
    assert both.labels == whole.labels
    assert (both.counts == whole.counts).all()
