"""Which layers come out, and what a sentence's vector is."""

from typing import Any

import numpy as np
import pytest
import torch

from polyseme.embedding.output import EmbeddedSentence, LayerChoice
from polyseme.errors import ConfigError

EACH = [torch.full((1, 2, 4), float(value)) for value in (1, 10, 100)]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("all", [1, 10, 100]),
        ("top", [100]),
        ("average", [37]),
        (0, [1]),
        (2, [100]),
        (-1, [100]),
        ((1, 0, 0), [1]),
        ([0.5, 0.2, 0.01], [3.5]),
        (np.array([0.5, 0.2, 0.01]), [3.5]),
    ],
)
def test_one_word_says_which_layers(wish: Any, expected: list[float]) -> None:
    choice = LayerChoice(wish, 3)
    found = choice(EACH)
    assert choice.num_layers == len(found) == len(expected)
    assert choice.is_one == (len(expected) == 1)
    for layer, value in zip(found, expected, strict=True):
        assert torch.allclose(layer, torch.full((1, 2, 4), float(value)))


@pytest.mark.parametrize(
    "wish",
    [3, -4, "bottom", "1", (1, 2), (1, 2, 3, 4), (1, 2, float("nan")), None, True],
)
def test_what_the_model_does_not_have_is_refused_with_what_it_has(wish: Any) -> None:
    with pytest.raises(ConfigError, match="'average', a number from 0 to 2, or 3 weights"):
        LayerChoice(wish, 3)


def test_a_sentence_vector_is_the_mean_over_its_words() -> None:
    vectors = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    sentence = EmbeddedSentence(("a", "b", "c"), vectors, 0)
    expected = (vectors[:, 0] + vectors[:, 1] + vectors[:, 2]) / 3
    assert np.allclose(sentence.sentence_vector(), expected)
    top = EmbeddedSentence(("a", "b", "c"), vectors[1], 0)
    assert np.allclose(top.sentence_vector(), expected[1])


def test_a_sentence_vector_without_words_is_zero() -> None:
    empty = EmbeddedSentence((), np.empty((2, 0, 4), np.float32), 0)
    assert np.array_equal(empty.sentence_vector(), np.zeros((2, 4)))


def test_ends_follow_from_starts_and_words() -> None:
    sentence = EmbeddedSentence(("a", "𝒜b"), np.empty((2, 2, 4), np.float32), 0, (3, 5))
    assert sentence.ends == (4, 7)
