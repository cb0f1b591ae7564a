"""A sentence's probability is the product of its words': checked against a full table."""

import numpy as np
import pytest
import torch

from polyseme.pretraining.evaluation import score_sentences
from polyseme.text.corpus import Corpus
from pretraining.making import tiny_model

SENTENCES = [["The", "old", "cat", "purrs"], ["cat"], ["an", "unseen", "word", "."] * 3]


def test_each_word_has_the_probability_the_model_gives_it(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    for sentence, score in zip(SENTENCES, score_sentences(model, SENTENCES), strict=True):
        batch = model.vocabulary.batch([sentence])
        random = np.random.default_rng(0)
        targets = model.network.objective.make_targets(batch, model.vocabulary, random)
        with torch.no_grad():
            forward, backward = model.network.encoder(batch).halves
            softmax = model.network.objective.softmax
            ids = batch.ids[batch.words[0]]
            for half, part, steps in ((forward, "forward", 1), (backward, "backward", -1)):
                logits = half[0] @ softmax.weight.T + softmax.bias  # type: ignore[union-attr]
                table = logits.log_softmax(-1)
                places = range(1, len(sentence) + 1)
                expected = [float(table[place - steps, ids[place]]) for place in places]
                assert score.parts[part].words == pytest.approx(expected, abs=1e-4)
                far_end = len(sentence) + 1 if steps == 1 else 0
                total = sum(expected) + float(table[far_end - steps, ids[far_end]])
                assert score.parts[part].total == pytest.approx(total, abs=1e-4)
        assert set(targets.parts) == set(score.parts)


def test_scores_do_not_depend_on_the_other_sentences(corpus: Corpus) -> None:
    model = tiny_model(corpus)
    together = [score.total for score in score_sentences(model, SENTENCES)]
    alone = [next(iter(score_sentences(model, [sentence]))).total for sentence in SENTENCES]
    assert together == pytest.approx(alone, rel=1e-5)
