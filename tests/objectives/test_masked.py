"""Masked words: how many, which, and what stands in their place."""

import numpy as np
import pytest
import torch

from objectives.making import VOCABULARY, WORDS, paired, random_sentences
from polyseme.config import build
from polyseme.data.batch import BOS, EOS, FIRST_WORD, MASK, Batch
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.encoders.encoded import Encoded
from polyseme.errors import ConfigError
from polyseme.objectives.masked import ClassificationHead, Masked, MaskedConfig
from polyseme.objectives.prediction import Prediction, TrainingTargets, scores, word_ids
from polyseme.objectives.softmaxes import FullSoftmaxConfig


def masked(**values: object) -> Masked:
    config = MaskedConfig.model_validate({"softmax": FullSoftmaxConfig(), **values})
    return Masked(config, vocab_size=VOCABULARY.size, dim=4)


def make_targets(batch: Batch, seed: int = 0, **values: object) -> TrainingTargets:
    return masked(**values).make_targets(batch, VOCABULARY, np.random.default_rng(seed))


LARGE = VOCABULARY.batch(random_sentences(3000))


def test_of_many_words_fifteen_in_a_hundred_are_predicted() -> None:
    words = LARGE.num_words - 2 * len(LARGE.lengths)
    assert make_targets(LARGE).counts["masked"] == round(0.15 * words)


def test_of_the_targets_eighty_ten_and_ten_are_masked_random_and_left() -> None:
    targets = make_targets(LARGE)
    part = targets.parts["masked"]
    there = word_ids(targets.batch)[part.rows, part.columns]
    number = len(there)
    is_masked, is_left = there == MASK, there == part.ids
    # Of the random ones, one in some thirty meets its own word again. Bounds: four standard errors.
    assert float(is_masked.sum()) / number == pytest.approx(0.8, abs=4 * (0.16 / number) ** 0.5)
    again = 0.1 / len(WORDS)
    assert float(is_left.sum()) / number == pytest.approx(
        0.1 + again, abs=4 * (0.09 / number) ** 0.5
    )
    replaced = there[~is_masked & ~is_left]
    assert int(replaced.min()) >= FIRST_WORD
    assert len(set(replaced.tolist())) == len(WORDS)


def test_targets_are_the_words_that_stood_there() -> None:
    part = make_targets(LARGE).parts["masked"]
    assert torch.equal(part.ids, word_ids(LARGE)[part.rows, part.columns])


def test_special_tokens_are_never_targets_nor_changed() -> None:
    targets = make_targets(LARGE, mask_probability=0.9)
    before, after = word_ids(LARGE), word_ids(targets.batch)
    assert not set(targets.parts["masked"].ids.tolist()) & {BOS, EOS}
    for mark in (BOS, EOS):
        assert torch.equal(before == mark, after == mark)
    assert not after[~LARGE.mask].any()


def test_words_that_are_no_targets_stand_as_they_stood() -> None:
    targets = make_targets(LARGE)
    is_target = torch.zeros_like(LARGE.mask)
    is_target[targets.parts["masked"].rows, targets.parts["masked"].columns] = True
    same = word_ids(targets.batch) == word_ids(LARGE)
    assert bool(same[~is_target].all())


@pytest.mark.parametrize("kind", ["unicode", "bytes", "none"])
def test_a_masked_word_has_the_characters_of_the_mask_token(kind: str) -> None:
    config = VocabularyConfig.model_validate({"characters": kind})
    vocabulary = Vocabulary(
        config, VOCABULARY.words, VOCABULARY.counts, VOCABULARY.chars.characters
    )
    batch = vocabulary.batch([["w1", "w2"], ["w3"]])
    objective = masked(mask_probability=0.99, mask_token_share=1.0, random_token_share=0.0)
    found = objective.make_targets(batch, vocabulary, np.random.default_rng(0)).batch
    place = found.words[0, 1]
    width = batch.char_ids.shape[1]
    spelling = vocabulary.special_token_chars[MASK][:width].tolist()
    assert int(found.ids[place]) == MASK
    assert found.char_ids[place].tolist() == spelling
    assert found.char_ids.shape[1] == width


def test_at_least_one_word_is_predicted() -> None:
    assert make_targets(VOCABULARY.batch([["w1"]])).counts["masked"] == 1


def test_of_pairs_it_is_predicted_whether_the_second_follows() -> None:
    batch = paired(random_sentences(6))
    targets = make_targets(batch)
    part = targets.parts["next_sentence"]
    assert part.rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert not part.columns.any()  # at the first BOS
    assert batch.follows is not None
    assert torch.equal(part.ids, batch.follows)
    assert torch.equal(targets.batch.segments, batch.segments)  # type: ignore[arg-type]


def test_whether_a_pair_follows_is_predicted_by_a_head_of_its_own() -> None:
    batch, objective = paired(random_sentences(6)), masked()
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    top = torch.randn(*batch.words.shape, 4)
    prediction = objective.predict(lambda _: Encoded((top,), batch.mask, False), targets)[
        "next_sentence"
    ]
    ids = targets.parts["next_sentence"].ids
    told = prediction.head.log_probabilities(prediction.vectors, ids, table=None)
    assert objective.next_sentence is not None
    scores = top[:, 0] @ objective.next_sentence.weight.t() + objective.next_sentence.bias
    assert torch.allclose(told, scores.log_softmax(-1)[torch.arange(6), ids], atol=1e-6)
    (loss,) = prediction.head.losses([(prediction.vectors, ids)], table=None, negatives=None)
    assert torch.allclose(loss, -told.sum())


def test_more_than_all_cannot_be_masked_and_replaced() -> None:
    with pytest.raises(ConfigError, match=r"0.8 and random_token_share 0.3 add up to more than 1"):
        build(MaskedConfig, {"mask_token_share": 0.8, "random_token_share": 0.3})
    build(MaskedConfig, {"mask_token_share": 0.7, "random_token_share": 0.3})


def test_whether_a_pair_follows_is_measured_by_how_often_it_is_right() -> None:
    head = ClassificationHead(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.eye(2))
        head.bias.zero_()
    vectors = torch.tensor([[3.0, 1.0], [0.0, 2.0], [5.0, 4.0]])
    targets = torch.tensor([0, 0, 0])
    found = scores({"next_sentence": Prediction(head, vectors, targets)}, None)["next_sentence"]
    assert found.measure == "accuracy"
    assert found.values.tolist() == [True, False, True]
    log_probs, ids = head.top_k(vectors, 2, table=None)
    assert ids.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert torch.allclose(log_probs.exp().sum(dim=-1), torch.ones(3))
    assert torch.equal(head.logits(vectors, torch.tensor([1, 0]), table=None), vectors.flip(1))
