"""Hidden words: how many, which, and what stands in their place."""

import numpy as np
import pytest
import torch

from objectives.making import LEXICON, WORDS, paired, random_sentences
from polyseme.batches import END, FIRST_WORD, HIDDEN, START, Batch, Lexicon, LexiconConfig
from polyseme.config import build
from polyseme.encoders.encoded import Encoded
from polyseme.errors import ConfigError
from polyseme.objectives.masked import Masked, MaskedConfig
from polyseme.objectives.places import answers_of
from polyseme.objectives.question import Question
from polyseme.objectives.softmaxes import FullSoftmaxConfig


def masked(**values: object) -> Masked:
    config = MaskedConfig.model_validate({"softmax": FullSoftmaxConfig(), **values})
    return Masked(config, vocabulary=LEXICON.size, width=4)


def ask(batch: Batch, seed: int = 0, **values: object) -> Question:
    return masked(**values).ask(batch, LEXICON, np.random.default_rng(seed))


LARGE = LEXICON.batch(random_sentences(3000))


def test_of_many_words_fifteen_in_a_hundred_are_asked_for() -> None:
    words = LARGE.num_words - 2 * len(LARGE.lengths)
    assert ask(LARGE).counts["masked"] == round(0.15 * words)


def test_of_those_asked_for_eighty_ten_and_ten_are_hidden_replaced_and_left() -> None:
    question = ask(LARGE)
    asked = question.asked["masked"]
    there = answers_of(question.batch)[asked.rows, asked.columns]
    number = len(there)
    is_hidden, is_left = there == HIDDEN, there == asked.answers
    # Of those replaced, one in some thirty meets its own word again. Bounds: four standard errors.
    assert float(is_hidden.sum()) / number == pytest.approx(0.8, abs=4 * (0.16 / number) ** 0.5)
    again = 0.1 / len(WORDS)
    assert float(is_left.sum()) / number == pytest.approx(
        0.1 + again, abs=4 * (0.09 / number) ** 0.5
    )
    replaced = there[~is_hidden & ~is_left]
    assert int(replaced.min()) >= FIRST_WORD
    assert len(set(replaced.tolist())) == len(WORDS)


def test_answers_are_the_words_that_stood_there() -> None:
    asked = ask(LARGE).asked["masked"]
    assert torch.equal(asked.answers, answers_of(LARGE)[asked.rows, asked.columns])


def test_no_place_is_asked_for_twice() -> None:
    asked = ask(LARGE).asked["masked"]
    places = asked.rows * LARGE.words.shape[1] + asked.columns
    assert len(set(places.tolist())) == len(places)


def test_marks_are_never_asked_for_nor_changed() -> None:
    question = ask(LARGE, share=0.9)
    before, after = answers_of(LARGE), answers_of(question.batch)
    assert not set(question.asked["masked"].answers.tolist()) & {START, END}
    for mark in (START, END):
        assert torch.equal(before == mark, after == mark)
    assert not after[~LARGE.mask].any()


def test_words_not_asked_for_stand_as_they_stood() -> None:
    question = ask(LARGE)
    is_asked = torch.zeros_like(LARGE.mask)
    is_asked[question.asked["masked"].rows, question.asked["masked"].columns] = True
    same = answers_of(question.batch) == answers_of(LARGE)
    assert bool(same[~is_asked].all())


@pytest.mark.parametrize("kind", ["unicode", "bytes", "none"])
def test_a_hidden_word_is_spelt_as_the_mark_that_hides_it(kind: str) -> None:
    config = LexiconConfig.model_validate({"characters": kind})
    lexicon = Lexicon(config, LEXICON.words, LEXICON.counts, LEXICON.alphabet.characters)
    batch = lexicon.batch([["w1", "w2"], ["w3"]])
    objective = masked(share=0.99, hidden=1.0, replaced=0.0)
    hidden = objective.ask(batch, lexicon, np.random.default_rng(0)).batch
    place = hidden.words[0, 1]
    width = batch.characters.shape[1]
    spelling = lexicon.mark_characters[HIDDEN][:width].tolist()
    assert int(hidden.ids[place]) == HIDDEN
    assert hidden.characters[place].tolist() == spelling
    assert hidden.characters.shape[1] == width


def test_the_same_chance_asks_the_same() -> None:
    one, other, third = ask(LARGE, 7), ask(LARGE, 7), ask(LARGE, 8)
    assert torch.equal(one.batch.words, other.batch.words)
    assert torch.equal(one.asked["masked"].rows, other.asked["masked"].rows)
    assert not torch.equal(one.batch.words, third.batch.words)


def test_the_batch_that_was_given_is_left_alone() -> None:
    before = LARGE.words.clone()
    ask(LARGE)
    assert torch.equal(LARGE.words, before)


def test_at_least_one_word_is_asked_for() -> None:
    assert ask(LEXICON.batch([["w1"]])).counts["masked"] == 1


def test_pairs_are_asked_whether_the_second_follows() -> None:
    batch = paired(random_sentences(6))
    question = ask(batch)
    asked = question.asked["next"]
    assert asked.rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert not asked.columns.any()  # at the first mark
    assert batch.follows is not None
    assert torch.equal(asked.answers, batch.follows)
    assert torch.equal(question.batch.segments, batch.segments)  # type: ignore[arg-type]


def test_whether_a_pair_follows_is_told_by_a_head_of_its_own() -> None:
    batch, objective = paired(random_sentences(6)), masked()
    question = objective.ask(batch, LEXICON, np.random.default_rng(0))
    top = torch.randn(*batch.words.shape, 4)
    guess = objective.guess(Encoded((top,), batch.mask, False), question)["next"]
    answers = question.asked["next"].answers
    told = guess.head.log_probabilities(guess.vectors, answers, table=None)
    assert objective.next is not None
    scores = top[:, 0] @ objective.next.weight.t() + objective.next.bias
    assert torch.allclose(told, scores.log_softmax(-1)[torch.arange(6), answers], atol=1e-6)
    loss = guess.head.loss(guess.vectors, answers, table=None, drawn=None)
    assert torch.allclose(loss, -told.sum())


def test_without_pairs_nothing_is_asked_about_them() -> None:
    assert set(ask(paired(random_sentences(6)), next_sentence=False).asked) == {"masked"}
    assert set(ask(LEXICON.batch(random_sentences(6))).asked) == {"masked"}


def test_more_than_all_cannot_be_hidden_and_replaced() -> None:
    with pytest.raises(ConfigError, match=r"hidden 0.8 and replaced 0.3 are more than all"):
        build(MaskedConfig, {"hidden": 0.8, "replaced": 0.3})
    build(MaskedConfig, {"hidden": 0.7, "replaced": 0.3})
