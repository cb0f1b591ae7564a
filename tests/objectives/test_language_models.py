"""The two objectives that read in a direction: which word is asked for where."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from objectives.making import LEXICON, random_sentences
from polyseme.batches import END, START
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.bidirectional import Bidirectional, BidirectionalConfig
from polyseme.objectives.causal import Causal, CausalConfig
from polyseme.objectives.places import answers_of
from polyseme.objectives.question import Asked
from polyseme.objectives.softmaxes import FullSoftmaxConfig, SampledSoftmaxConfig

FULL = FullSoftmaxConfig()


def read_off(asked: Asked, number: int) -> list[list[tuple[int, int]]]:
    """For each sentence, (place, answer) in order."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(number)]
    for row, column, answer in zip(
        *(t.tolist() for t in (asked.rows, asked.columns, asked.answers)), strict=True
    ):
        found[row].append((column, answer))
    return found


def test_each_direction_is_asked_for_the_neighbour_it_has_not_read() -> None:
    sentences = random_sentences(9)
    batch = LEXICON.batch(sentences)
    objective = Bidirectional(BidirectionalConfig(softmax=FULL), vocabulary=LEXICON.size, width=4)
    question = objective.ask(batch, LEXICON, np.random.default_rng(0))
    ahead = read_off(question.asked["forward"], 9)
    behind = read_off(question.asked["backward"], 9)
    for row, sentence in enumerate(sentences):
        known = LEXICON.ids_of(pa.array(sentence)).tolist()
        ids = [START, *known, END]
        assert ahead[row] == [(place, ids[place + 1]) for place in range(len(ids) - 1)]
        assert behind[row] == [(place, ids[place - 1]) for place in range(1, len(ids))]
    assert question.counts == dict.fromkeys(("forward", "backward"), batch.num_words - 9)


def test_a_causal_model_is_asked_what_the_forward_half_is_asked() -> None:
    batch = LEXICON.batch(random_sentences(9))
    one = Causal(CausalConfig(softmax=FULL), vocabulary=LEXICON.size, width=4)
    both = Bidirectional(BidirectionalConfig(softmax=FULL), vocabulary=LEXICON.size, width=4)
    found = one.ask(batch, LEXICON, np.random.default_rng(0)).asked["forward"]
    expected = both.ask(batch, LEXICON, np.random.default_rng(0)).asked["forward"]
    for name in ("rows", "columns", "answers"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


def test_each_direction_is_told_from_its_own_half() -> None:
    batch = LEXICON.batch([["w1", "w2"]])
    objective = Bidirectional(BidirectionalConfig(softmax=FULL), vocabulary=LEXICON.size, width=4)
    question = objective.ask(batch, LEXICON, np.random.default_rng(0))
    top = torch.arange(32.0).view(1, 4, 8)
    guesses = objective.guess(Encoded((top,), batch.mask, True), question)
    assert torch.equal(guesses["forward"].vectors, top[0, :3, :4])
    assert torch.equal(guesses["backward"].vectors, top[0, 1:, 4:])


@pytest.mark.parametrize("is_sampled", [True, False])
def test_candidates_are_drawn_where_the_softmax_is_sampled(is_sampled: bool) -> None:
    softmax = SampledSoftmaxConfig(samples=7) if is_sampled else FULL
    objective = Causal(CausalConfig(softmax=softmax), vocabulary=LEXICON.size, width=4)
    question = objective.ask(LEXICON.batch([["w1"]]), LEXICON, np.random.default_rng(0))
    assert (question.candidates is not None) == is_sampled
    assert not is_sampled or len(question.candidates.ids) == 7  # type: ignore[union-attr]


def test_the_id_of_every_place_is_known() -> None:
    ids = answers_of(LEXICON.batch([["w0", "x1"], ["w2"]]))
    assert ids.tolist() == [[START, 5, 3, END], [START, 7, END, 0]]
