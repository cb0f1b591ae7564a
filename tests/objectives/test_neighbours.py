"""Neighbours, found one word at a time."""

from collections import Counter

import numpy as np
import pytest
import torch

from objectives.making import LEXICON, random_sentences
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.neighbours import Neighbours, NeighboursConfig
from polyseme.objectives.places import answers_of
from polyseme.objectives.softmaxes import FullSoftmaxConfig


def neighbours(**values: object) -> Neighbours:
    config = NeighboursConfig.model_validate({"softmax": FullSoftmaxConfig(), **values})
    return Neighbours(config, vocabulary=LEXICON.size, width=3)


@pytest.mark.parametrize("reach", [1, 2, 5, 40])
def test_a_word_is_told_from_the_mean_of_those_around_it(reach: int) -> None:
    batch = LEXICON.batch(random_sentences(8))
    objective = neighbours(reach=reach)
    question = objective.ask(batch, LEXICON, np.random.default_rng(0))
    vectors = torch.randn(*batch.words.shape, 3)
    found = objective.guess(Encoded((vectors,), batch.mask, False), question)["neighbours"].vectors
    asked = question.asked["neighbours"]
    for number, (row, column) in enumerate(zip(asked.rows, asked.columns, strict=True)):
        near = [
            vectors[row, place]
            for place in range(int(batch.lengths[row]))
            if 0 < abs(place - int(column)) <= reach
        ]
        assert torch.allclose(found[number], torch.stack(near).mean(0), atol=1e-5)


def test_every_word_is_asked_for_once_and_no_mark() -> None:
    sentences = random_sentences(8)
    batch = LEXICON.batch(sentences)
    asked = neighbours().ask(batch, LEXICON, np.random.default_rng(0)).asked["neighbours"]
    places = list(zip(asked.rows.tolist(), asked.columns.tolist(), strict=True))
    assert places == [
        (row, n + 1) for row, words in enumerate(sentences) for n in range(len(words))
    ]
    assert torch.equal(asked.answers, answers_of(batch)[asked.rows, asked.columns])


def test_neighbours_asked_for_stand_within_reach_in_the_same_sentence() -> None:
    sentences = random_sentences(400)
    batch, objective = LEXICON.batch(sentences), neighbours(predicts="neighbours", reach=2)
    asked = objective.ask(batch, LEXICON, np.random.default_rng(0)).asked["neighbours"]
    ids = answers_of(batch)
    for row, column, answer in zip(
        asked.rows.tolist(), asked.columns.tolist(), asked.answers.tolist(), strict=True
    ):
        last = int(batch.lengths[row]) - 2
        near = [p for p in range(max(1, column - 2), min(last, column + 2) + 1) if p != column]
        assert answer in ids[row, near].tolist()


def test_nearer_neighbours_are_asked_for_more_often() -> None:
    """Reach 3: a step of one comes from all three windows, of two from two, of three from one."""
    words = [f"w{number}" for number in range(30)]
    batch, objective = LEXICON.batch([words] * 300), neighbours(predicts="neighbours", reach=3)
    asked = objective.ask(batch, LEXICON, np.random.default_rng(0)).asked["neighbours"]
    middle = (asked.columns > 3) & (asked.columns < 28)
    steps = Counter((asked.answers - 5 - (asked.columns - 1))[middle].tolist())
    total = sum(steps.values())
    expected = {1: (1 + 1 / 2 + 1 / 3) / 6, 2: (1 / 2 + 1 / 3) / 6, 3: (1 / 3) / 6}
    for step, share in expected.items():
        for sign in (1, -1):
            assert steps[sign * step] / total == pytest.approx(share, abs=4 * 0.5 / total**0.5)


def test_neighbours_are_told_from_the_word_alone() -> None:
    batch, objective = LEXICON.batch([["w1", "w2", "w3"]]), neighbours(predicts="neighbours")
    question = objective.ask(batch, LEXICON, np.random.default_rng(0))
    vectors, asked = torch.randn(1, 5, 3), question.asked["neighbours"]
    found = objective.guess(Encoded((vectors,), batch.mask, False), question)["neighbours"].vectors
    assert torch.equal(found, vectors[0, asked.columns])


def test_a_sentence_of_one_word_has_no_neighbours() -> None:
    batch, objective = LEXICON.batch([["w1"]]), neighbours(predicts="neighbours")
    for seed in range(10):
        question = objective.ask(batch, LEXICON, np.random.default_rng(seed))
        assert question.counts == {"neighbours": 0}
