"""Measures against scikit-learn, and small cases counted by hand.

What was taken for what.

The paired bootstrap: sure where it can be, unsure where it must be, right on average.

Exact match and F1 of answers, against cases worked out by hand.

BLEU and chrF from sums of n-grams, against sacrebleu's own for a whole corpus.

MUC, B³ and CEAF on cases worked out by hand, in print, and over all alignments.

Spans and labels, against the definition of seqeval and against themselves.
"""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, permutations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required import need_package
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from polyseme.errors import InputError
from polyseme.tasks import measures as confusion_file
from polyseme.tasks.measures import (
    CLUSTER_MEASURES,
    LABEL_MEASURES,
    AnswerScores,
    Clusters,
    Counts,
    ExampleScores,
    LabelScore,
    Tokenize,
    Values,
    b_cubed,
    ceaf_e,
    compare,
    confusion,
    count_labels,
    count_spans,
    count_tags,
    draw_confusion,
    exact_match,
    f1,
    muc,
    score_clusters,
    score_texts,
    value_of,
)
from polyseme.tasks.spans import (
    Scheme,
    Span,
    convert,
    find_spans,
    transitions,
    write_labels,
)

answers = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1)


@pytest.fixture(scope="module")
def sklearn_metrics() -> Any:
    return need_package("sklearn.metrics")


@settings(deadline=None, max_examples=50)
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


@pytest.mark.parametrize(
    ("answer", "gold", "em", "shared"),
    [
        ("the Denver Broncos", "Denver Broncos.", 1, 1),
        ("Denver", "Denver Broncos", 0, 2 / 3),
        ("in an old house", "the house, in Rome", 0, 2 * 2 / (3 + 3)),
        ("a cat and a cat", "one cat", 0, 2 * 1 / (3 + 2)),
        ("theatre", "atre", 0, 0),  # an article is a word, not a part of one
        ("The", "a", 1, 1),  # nothing is left of either
        ("The", "x", 0, 0),
    ],
)
def test_answers_in_words_are_compared_as_in_squad(
    answer: str, gold: str, em: float, shared: float
) -> None:
    assert exact_match(answer, gold, "words") == em
    assert f1(answer, gold, "words") == pytest.approx(shared)


@pytest.mark.parametrize(
    ("answer", "gold", "em", "shared"),
    [
        ("《光荣》", "光荣", 1, 1),
        ("光荣公司", "光荣", 0, 2 * 2 / (4 + 2)),
        # Not a bag of characters: the longest run in common is 京大.
        ("大北京大", "京大北", 0, 2 * 2 / (4 + 3)),
        ("ω-Force 公司", "ω-force公司", 1, 1),
        ("1786年2月", "1786 年", 0, 2 * 2 / (4 + 2)),
        ("中", "西", 0, 0),
    ],
)
def test_answers_in_characters_are_compared_as_in_cmrc(
    answer: str, gold: str, em: float, shared: float
) -> None:
    assert exact_match(answer, gold, "characters") == em
    assert f1(answer, gold, "characters") == pytest.approx(shared)


def test_of_several_gold_answers_the_best_counts_and_means_are_taken() -> None:
    found = AnswerScores.of(
        ["Paris", "the sea"], [["in Paris", "Paris"], ["sand"]], "words", in_text=[True, False]
    )
    assert found.value("em") == found.value("f1") == 0.5
    assert found.tables() == {
        "answers": [{"f1": 0.5, "em": 0.5, "questions": 2, "not in the text": 1}]
    }
    twice = found.concat([found])
    assert len(twice) == 4
    assert np.array_equal(twice.statistics("em")[:, 0], [1, 0, 1, 0])


WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far"]
CHARACTERS = "天地玄黄宇宙洪荒日月，。"


def texts(random: np.random.Generator, number: int, tokenize: Tokenize) -> list[str]:
    known = WORDS if tokenize == "none" else list(CHARACTERS)
    joined = " " if tokenize == "none" else ""
    return [
        joined.join(random.choice(known, size=random.integers(0, 12)).tolist())
        for _ in range(number)
    ]


@pytest.mark.parametrize("tokenize", ["none", "zh"])
@pytest.mark.parametrize("seed", range(8))
def test_both_are_those_of_sacrebleu_for_the_corpus(tokenize: Tokenize, seed: int) -> None:
    random = np.random.default_rng(seed)
    gold = texts(random, 15, tokenize)
    found = [
        wanted if random.random() < 0.5 else other
        for wanted, other in zip(gold, texts(random, 15, tokenize), strict=True)
    ]
    scores = score_texts(gold, found, tokenize)
    bleu = BLEU(tokenize=tokenize, force=True).corpus_score(found, [gold]).score
    assert scores.value("bleu") == pytest.approx(bleu / 100)
    assert scores.value("chrf") == pytest.approx(CHRF().corpus_score(found, [gold]).score / 100)


def test_scores_follow_each_other_and_other_examples_are_noticed() -> None:
    both = score_texts(["a b c", "d"], ["a b", "d"], "none")
    one, two = score_texts(["a b c"], ["a b"], "none"), score_texts(["d"], ["d"], "none")
    joined = one.concat([two])
    assert joined.value("bleu") == both.value("bleu")
    assert joined.has_examples_of(both)
    assert not one.has_examples_of(two)
    assert both.tables()["by_measure"][0]["length"] == pytest.approx(3 / 4)


def clusters(*names: str) -> list[list[tuple[int, int]]]:
    """Each letter is a mention."""
    return [[(ord(letter), ord(letter) + 1) for letter in name] for name in names]


def any_clusters(random: np.random.Generator, letters: str = "abcdefgh") -> Clusters:
    """Some of the letters, in up to four clusters."""
    kept = [letter for letter in letters if random.random() < 0.8]
    owner = random.integers(4, size=len(kept))
    found = ["".join(x for x, o in zip(kept, owner, strict=True) if o == k) for k in range(4)]
    return clusters(*(name for name in found if name))


def shares(key: Clusters, response: Clusters) -> dict[str, list[float]]:
    """Recall and precision of each measure."""
    rows = score_clusters([key], [response]).tables()["by_measure"]
    return {row["measure"]: [row["recall"], row["precision"]] for row in rows}


def test_the_example_of_pradhan_and_others_has_the_figures_they_print() -> None:
    # Scoring Coreference Partitions of Predicted Mentions (2014), section 4: fractions by hand.
    found = shares(clusters("abc", "defg"), clusters("ab", "cd", "fghi"))
    assert found["muc"] == pytest.approx([2 / 5, 2 / 5])
    assert found["b-cubed"] == pytest.approx([float(Fraction(35, 84)), 4 / 8])
    assert found["ceaf-e"] == pytest.approx([1.3 / 2, 1.3 / 3])
    assert found["mention-f1"] == pytest.approx([6 / 7, 6 / 8])


def test_ceaf_finds_the_best_of_all_alignments() -> None:
    random = np.random.default_rng(4)
    for _ in range(150):
        key, response = any_clusters(random), any_clusters(random)
        longer, shorter = sorted((key, response), key=len, reverse=True)
        best = max(
            sum(
                2 * len({*one} & {*other}) / (len(one) + len(other))
                for one, other in zip(shorter, chosen, strict=True)
            )
            for chosen in permutations(longer, len(shorter))
        )
        assert ceaf_e(key, response) == pytest.approx((best, len(key)))


def test_muc_counts_the_links_that_must_be_added() -> None:
    # Another road: a cluster's links are the edges of a tree over it; those between mentions that
    # the response has together are found, whatever the tree, when its parts are joined first.
    random = np.random.default_rng(5)
    for _ in range(100):
        key, response = any_clusters(random), any_clusters(random)
        found = sum(max(0, len({*k} & {*r}) - 1) for k in key for r in response)
        assert muc(key, response) == (found, sum(len(k) - 1 for k in key))


def test_b_cubed_is_the_mean_over_mentions() -> None:
    random = np.random.default_rng(6)
    for _ in range(100):
        key, response = any_clusters(random), any_clusters(random)
        parts = [
            len({*k} & next(({*r} for r in response if mention in r), set())) / len(k)
            for k in key
            for mention in k
        ]
        assert b_cubed(key, response) == pytest.approx((sum(parts), len(parts)))


def test_several_documents_are_measured_by_sums_and_not_by_means() -> None:
    key = [clusters("ab", "c"), clusters("defg")]
    response = [clusters("ab"), clusters("de", "fg")]
    scores = score_clusters(key, response)
    recall, precision = (1 + 2) / (1 + 3), (1 + 2) / (1 + 2)
    assert scores.value("muc") == pytest.approx(2 * recall * precision / (recall + precision))
    three = [scores.value(name) for name in ("muc", "b-cubed", "ceaf-e")]
    assert scores.value("conll-f1") == pytest.approx(sum(three) / 3)
    apart = score_clusters(key[:1], response[:1]).concat([score_clusters(key[1:], response[1:])])
    assert np.array_equal(apart.sums, scores.sums)
    assert apart.has_examples_of(scores)


def test_a_perfect_answer_is_one_and_no_answer_is_zero_in_every_measure() -> None:
    key = [clusters("abc", "de", "f")]
    for measure in CLUSTER_MEASURES:
        assert score_clusters(key, key).value(measure) == pytest.approx(1)
        assert score_clusters(key, [[]]).value(measure) == 0
        assert score_clusters([[]], key).value(measure) == 0


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


def test_a_label_that_marks_no_span_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'NOUN' marks no span"):
        find_spans(["O", "NOUN"])
    with pytest.raises(InputError, match=r"'S-X' is not in the scheme 'bio'"):
        transitions(["O", "B-X", "S-X"], "bio")
