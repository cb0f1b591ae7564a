"""Neighbours, found one word at a time."""

from collections import Counter

import numpy as np
import pytest
import torch

from objectives.making import VOCABULARY, random_sentences
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.prediction import word_ids
from polyseme.objectives.softmaxes import FullSoftmaxConfig
from polyseme.objectives.word2vec import PART, Word2Vec, Word2VecConfig


def word2vec(**values: object) -> Word2Vec:
    config = Word2VecConfig.model_validate({"softmax": FullSoftmaxConfig(), **values})
    return Word2Vec(config, vocab_size=VOCABULARY.size, dim=3)


@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_a_word_is_predicted_from_the_mean_of_those_around_it(window: int) -> None:
    batch = VOCABULARY.batch(random_sentences(8))
    objective = word2vec(window=window)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    vectors = torch.randn(*batch.words.shape, 3)
    found = objective.predict(lambda _: Encoded((vectors,), batch.mask, False), targets)[
        PART
    ].vectors
    part = targets.parts[PART]
    for number, (row, column) in enumerate(zip(part.rows, part.columns, strict=True)):
        near = [
            vectors[row, place]
            for place in range(int(batch.lengths[row]))
            if 0 < abs(place - int(column)) <= window
        ]
        assert torch.allclose(found[number], torch.stack(near).mean(0), atol=1e-5)


def test_every_word_is_predicted_once_and_no_special_token() -> None:
    sentences = random_sentences(8)
    batch = VOCABULARY.batch(sentences)
    part = word2vec().make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts[PART]
    places = list(zip(part.rows.tolist(), part.columns.tolist(), strict=True))
    assert places == [
        (row, n + 1) for row, words in enumerate(sentences) for n in range(len(words))
    ]
    assert torch.equal(part.ids, word_ids(batch)[part.rows, part.columns])


def test_neighbours_predicted_stand_within_the_window_in_the_same_sentence() -> None:
    sentences = random_sentences(400)
    batch, objective = VOCABULARY.batch(sentences), word2vec(architecture="skipgram", window=2)
    part = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts[PART]
    ids = word_ids(batch)
    for row, column, target in zip(
        part.rows.tolist(), part.columns.tolist(), part.ids.tolist(), strict=True
    ):
        last = int(batch.lengths[row]) - 2
        near = [p for p in range(max(1, column - 2), min(last, column + 2) + 1) if p != column]
        assert target in ids[row, near].tolist()


def test_nearer_neighbours_are_predicted_more_often() -> None:
    """Window 3: a step of one comes from all three windows, of two from two, of three from one."""
    words = [f"w{number}" for number in range(30)]
    batch, objective = VOCABULARY.batch([words] * 300), word2vec(architecture="skipgram", window=3)
    part = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts[PART]
    middle = (part.columns > 3) & (part.columns < 28)
    steps = Counter((part.ids - 5 - (part.columns - 1))[middle].tolist())
    total = sum(steps.values())
    expected = {1: (1 + 1 / 2 + 1 / 3) / 6, 2: (1 / 2 + 1 / 3) / 6, 3: (1 / 3) / 6}
    for step, share in expected.items():
        for sign in (1, -1):
            assert steps[sign * step] / total == pytest.approx(share, abs=4 * 0.5 / total**0.5)


def test_neighbours_are_predicted_from_the_word_alone() -> None:
    batch, objective = VOCABULARY.batch([["w1", "w2", "w3"]]), word2vec(architecture="skipgram")
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    vectors, part = torch.randn(1, 5, 3), targets.parts[PART]
    found = objective.predict(lambda _: Encoded((vectors,), batch.mask, False), targets)[
        PART
    ].vectors
    assert torch.equal(found, vectors[0, part.columns])


def test_a_sentence_of_one_word_has_no_word2vec() -> None:
    batch, objective = VOCABULARY.batch([["w1"]]), word2vec(architecture="skipgram")
    for seed in range(10):
        targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(seed))
        assert targets.counts == {PART: 0}
