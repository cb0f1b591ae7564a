"""Spans and labels, against the definition of seqeval and against themselves."""

import itertools
import warnings
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required import need_package

from polyseme.errors import InputError
from polyseme.tasks.measures import count_spans
from polyseme.tasks.spans import (
    Scheme,
    Span,
    convert,
    find_spans,
    transitions,
    write_labels,
)

SCHEMES: list[Scheme] = ["iob1", "bio", "bioes", "bmes"]
LETTERS = {"iob1": "BI", "bio": "BI", "bioes": "BIES", "bmes": "BMES"}


def labels_of(scheme: Scheme, kinds: tuple[str, ...] = ("X", "Y")) -> list[str]:
    return ["O", *(f"{letter}-{kind}" for letter in LETTERS[scheme] for kind in kinds)]


any_labels = st.lists(
    st.sampled_from(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("X", "Y-Z"))])
)
bare_labels = st.lists(st.sampled_from(["O", "B", "I", "E", "S"]))


@pytest.fixture(scope="module")
def seqeval() -> Any:
    return need_package("seqeval.metrics")


@settings(deadline=None)
@given(labels=any_labels | bare_labels)
def test_any_labels_valid_or_not_mean_the_spans_that_seqeval_finds(
    labels: list[str], seqeval: Any
) -> None:
    theirs = {
        ("" if kind == "_" else kind, first, last + 1)
        for kind, first, last in seqeval.sequence_labeling.get_entities(labels)
    }
    assert set(find_spans(labels)) == theirs


@settings(deadline=None)
@given(gold=st.lists(any_labels, min_size=1, max_size=6), random=st.randoms(use_true_random=False))
def test_precision_recall_and_f1_are_those_of_seqeval(
    gold: list[list[str]], random: Random, seqeval: Any
) -> None:
    predicted = [random.sample(labels, len(labels)) for labels in gold]
    counts = count_spans(gold, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where something is divided by nothing
        assert counts.value("precision") == pytest.approx(seqeval.precision_score(gold, predicted))
        assert counts.value("recall") == pytest.approx(seqeval.recall_score(gold, predicted))
        assert counts.value("f1") == pytest.approx(seqeval.f1_score(gold, predicted))
        macro = seqeval.f1_score(gold, predicted, average="macro") if counts.labels else 0
        assert counts.value("macro-f1") == pytest.approx(macro)


def test_the_example_of_the_page_in_every_scheme() -> None:
    spans = [Span("PER", 0, 2), Span("LOC", 2, 3)]
    assert write_labels(spans, 4, "iob1") == ["I-PER", "I-PER", "I-LOC", "O"]
    assert write_labels(spans, 4, "bio") == ["B-PER", "I-PER", "B-LOC", "O"]
    assert write_labels(spans, 4, "bioes") == ["B-PER", "E-PER", "S-LOC", "O"]
    assert write_labels(spans, 4, "bmes") == ["B-PER", "E-PER", "S-LOC", "O"]


def test_iob1_parts_only_adjacent_spans_of_one_kind() -> None:
    spans = [Span("X", 0, 1), Span("X", 1, 3), Span("Y", 3, 4), Span("X", 5, 6)]
    assert write_labels(spans, 6, "iob1") == ["I-X", "B-X", "I-X", "I-Y", "O", "I-X"]


@given(any_labels, st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_spans_survive_every_scheme(labels: list[str], one: Scheme, other: Scheme) -> None:
    spans = find_spans(labels)
    assert find_spans(convert(convert(labels, one), other)) == spans


@given(any_labels, st.sampled_from(SCHEMES))
def test_what_is_converted_keeps_the_rules(labels: list[str], scheme: Scheme) -> None:
    converted = convert(labels, scheme)
    names = sorted({*converted, "O"})
    rules = transitions(names, scheme)
    ids = [names.index(label) for label in converted]
    assert all(rules.start[i] for i in ids[:1])
    assert all(rules.stop[i] for i in ids[-1:])
    assert all(rules.pair[a][b] for a, b in itertools.pairwise(ids))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_allowed_is_exactly_what_comes_back_unchanged_from_its_spans(scheme: Scheme) -> None:
    labels = labels_of(scheme)
    rules = transitions(labels, scheme)
    for length in (1, 2, 3, 4):
        for ids in itertools.product(range(len(labels)), repeat=length):
            sentence = [labels[i] for i in ids]
            is_lawful = convert(sentence, scheme) == sentence
            by_pairs = (
                rules.start[ids[0]]
                and rules.stop[ids[-1]]
                and all(rules.pair[a][b] for a, b in itertools.pairwise(ids))
            )
            assert by_pairs == is_lawful, sentence


def test_in_bio_an_inside_needs_its_own_beginning() -> None:
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    rules = transitions(labels, "bio")
    before_inside_x = {labels[i] for i in range(5) if rules.pair[i][2]}
    assert before_inside_x == {"B-X", "I-X"}
    assert rules.start == (True, True, False, True, False)
    assert all(rules.stop)


def test_a_label_that_marks_no_span_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'NOUN' marks no span"):
        find_spans(["O", "NOUN"])
    with pytest.raises(InputError, match=r"'S-X' is not in the scheme 'bio'"):
        transitions(["O", "B-X", "S-X"], "bio")
