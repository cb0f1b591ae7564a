"""Exact match and F1 of answers, against cases worked out by hand."""

import numpy as np
import pytest

from polyseme.tasks.measures import AnswerScores, exact_match, f1


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
