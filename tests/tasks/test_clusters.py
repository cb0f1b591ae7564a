"""MUC, B³ and CEAF on cases worked out by hand, in print, and over all alignments."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from polyseme.tasks.measures import (
    CLUSTER_MEASURES,
    Clusters,
    b_cubed,
    ceaf_e,
    muc,
    score_clusters,
)


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


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        # Gold: one cluster of four, one of one.
        (("abcd", "e"), {"muc": [1, 1], "b-cubed": [1, 1], "ceaf-e": [1, 1]}),
        # All in one: no link is missing; of four links one is wrong.
        (("abcde",), {"muc": [1, 3 / 4], "b-cubed": [1, 17 / 25], "ceaf-e": [4 / 9, 8 / 9]}),
        # Each by itself: no link at all.
        (
            ("a", "b", "c", "d", "e"),
            {"muc": [0, 0], "b-cubed": [2 / 5, 1], "ceaf-e": [0.7, 1.4 / 5]},
        ),
        # Nothing found.
        ((), {"muc": [0, 0], "b-cubed": [0, 0], "ceaf-e": [0, 0]}),
    ],
)
def test_cases_worked_out_by_hand(response: tuple[str, ...], expected: dict[str, Any]) -> None:
    found = shares(clusters("abcd", "e"), clusters(*response))
    for measure, values in expected.items():
        assert found[measure] == pytest.approx(values), measure


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
