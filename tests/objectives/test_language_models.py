"""The two objectives that read in a direction: which word is the target where."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from objectives.making import VOCABULARY, random_sentences
from polyseme.data.batch import BOS, EOS
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.bidirectional import (
    Bidirectional,
    BidirectionalConfig,
    Causal,
    CausalConfig,
)
from polyseme.objectives.prediction import Targets
from polyseme.objectives.softmaxes import FullSoftmaxConfig, SampledSoftmaxConfig

FULL = FullSoftmaxConfig()


def read_off(part: Targets, number: int) -> list[list[tuple[int, int]]]:
    """For each sentence, (place, target) in order."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(number)]
    for row, column, target in zip(
        *(t.tolist() for t in (part.rows, part.columns, part.ids)), strict=True
    ):
        found[row].append((column, target))
    return found


def test_each_direction_predicts_the_neighbour_it_has_not_read() -> None:
    sentences = random_sentences(9)
    batch = VOCABULARY.batch(sentences)
    objective = Bidirectional(BidirectionalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    ahead = read_off(targets.parts["forward"], 9)
    behind = read_off(targets.parts["backward"], 9)
    for row, sentence in enumerate(sentences):
        known = VOCABULARY.ids_of(pa.array(sentence)).tolist()
        ids = [BOS, *known, EOS]
        assert ahead[row] == [(place, ids[place + 1]) for place in range(len(ids) - 1)]
        assert behind[row] == [(place, ids[place - 1]) for place in range(1, len(ids))]
    assert targets.counts == dict.fromkeys(("forward", "backward"), batch.num_words - 9)


def test_a_causal_model_predicts_what_the_forward_half_predicts() -> None:
    batch = VOCABULARY.batch(random_sentences(9))
    one = Causal(CausalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    both = Bidirectional(BidirectionalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    found = one.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts["forward"]
    expected = both.make_targets(batch, VOCABULARY, np.random.default_rng(0)).parts["forward"]
    for name in ("rows", "columns", "ids"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


def test_each_direction_predicts_from_its_own_half() -> None:
    batch = VOCABULARY.batch([["w1", "w2"]])
    objective = Bidirectional(BidirectionalConfig(softmax=FULL), vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    top = torch.arange(32.0).view(1, 4, 8)
    predictions = objective.predict(lambda _: Encoded((top,), batch.mask, True), targets)
    assert torch.equal(predictions["forward"].vectors, top[0, :3, :4])
    assert torch.equal(predictions["backward"].vectors, top[0, 1:, 4:])


def test_a_cloze_head_predicts_each_word_from_the_states_beside_it() -> None:
    """By its definition: the forward state before the word, the backward state after it."""
    batch = VOCABULARY.batch([["w1", "w2"], ["w3"]])
    config = BidirectionalConfig(softmax=FULL, cloze=True)
    objective = Bidirectional(config, vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(batch, VOCABULARY, np.random.default_rng(0))
    known = VOCABULARY.ids_of(pa.array(["w1", "w2", "w3"])).tolist()
    assert read_off(targets.parts["cloze"], 2) == [[(1, known[0]), (2, known[1])], [(1, known[2])]]
    top = torch.arange(64.0).view(2, 4, 8)
    predictions = objective.predict(lambda _: Encoded((top,), batch.mask, True), targets)
    left = torch.stack([top[0, 0, :4], top[0, 1, :4], top[1, 0, :4]])
    right = torch.stack([top[0, 2, 4:], top[0, 3, 4:], top[1, 2, 4:]])
    assert objective.cloze is not None
    assert torch.equal(predictions["cloze"].vectors, objective.cloze(left, right))
    assert list(targets.only("cloze", "words").parts) == ["cloze"]


@pytest.mark.parametrize("is_sampled", [True, False])
def test_negatives_are_sampled_where_the_softmax_is(is_sampled: bool) -> None:
    softmax = SampledSoftmaxConfig(num_samples=7) if is_sampled else FULL
    objective = Causal(CausalConfig(softmax=softmax), vocab_size=VOCABULARY.size, dim=4)
    targets = objective.make_targets(
        VOCABULARY.batch([["w1"]]), VOCABULARY, np.random.default_rng(0)
    )
    assert (targets.negatives is not None) == is_sampled
    assert not is_sampled or len(targets.negatives.ids) == 7  # type: ignore[union-attr]
