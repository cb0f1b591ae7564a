"""Nothing sees what it is to predict. One break of this and perplexity means nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from laws.cases import SENTENCES, WIDTH, WORDS, Case, every_case, make
from laws.looking import edited, edits, what_peeked
from polyseme.batches import Batch
from polyseme.model import Model
from polyseme.objectives.question import Question

Edit = tuple[list[list[str]], int, int, int, int]


@every_case
@settings(max_examples=2, derandomize=True, deadline=None)
@given(edit=edits())
def test_no_vector_changes_with_words_it_must_not_see(case: Case, edit: Edit) -> None:
    assert what_peeked(case.model().network.encoder, *edited(case, edit)) == []


@pytest.mark.slow
@every_case
@settings(max_examples=20, derandomize=True, deadline=None)
@given(edit=edits())
def test_no_vector_changes_with_words_it_must_not_see_full_count(case: Case, edit: Edit) -> None:
    assert what_peeked(case.model().network.encoder, *edited(case, edit)) == []


@every_case
def test_what_tells_an_answer_does_not_change_with_the_answer(case: Case) -> None:
    if case.config.objective.kind == "masked":
        told = {"hidden": 1.0, "replaced": 0.0}
        objective = case.config.objective.model_copy(update=told)
        case = replace(case, config=case.config.model_copy(update={"objective": objective}))
    model, batch = case.model(), case.batch()
    question = case.question(model)
    for part, asked in question.asked.items():
        if part == "next":
            continue
        for place in range(0, len(asked.rows), 3):
            row, column = int(asked.rows[place]), int(asked.columns[place])
            target = _column_of(part, column, asked.answers[place], batch.ids[batch.words[row]])
            words = batch.words.clone()
            words[row, target] = words[row, target] % (len(batch.ids) - 1) + 1
            other = case.question(model, replace(batch, words=words))
            before = _told(model, question.batch, question, part)[place]
            after = _told(model, other.batch, question, part)[place]
            assert torch.equal(before, after), (part, row, column)


def _column_of(part: str, column: int, answer: Tensor, row: Tensor) -> int:
    """Where the answer stands that is to be told from `column`."""
    if part in ("forward", "backward"):
        return column + (1 if part == "forward" else -1)
    if int(row[column]) == int(answer):
        return column  # the word itself: masked, CBOW
    near = (row == answer).nonzero().squeeze(1)
    return int(near[(near - column).abs().argmin()])


@torch.no_grad()
def _told(model: Model, batch: Batch, question: Question, part: str) -> Tensor:
    """(N, D) the vectors that are to tell the answers, this batch being read."""
    network = model.network
    return network.objective.guess(network.encoder(batch), question)[part].vectors


class Leaking(nn.Module):
    """What ELMo is often mistaken for: the second layer reads both directions of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.below = nn.LSTM(WIDTH, WIDTH, bidirectional=True, batch_first=True)
        self.above = nn.LSTM(2 * WIDTH, WIDTH, bidirectional=True, batch_first=True)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        below, _ = self.below(vectors)
        above, _ = self.above(below)
        return below, above


def leaking() -> tuple[Case, Model]:
    case = make("lstm", "apart", "bidirectional", "lookup", "full")
    model = case.model()
    model.network.encoder.context = Leaking()
    return case, model


def test_an_encoder_whose_second_layer_reads_both_ways_is_caught() -> None:
    case, model = leaking()
    batch, changed = edited(case, (SENTENCES, 1, 5, 6, 1))
    found = what_peeked(model.network.encoder, batch, changed)
    assert {"layer 2, forward", "layer 2, backward"} <= set(found)


def test_on_words_drawn_at_random_only_a_leaking_encoder_does_better_than_chance() -> None:
    case, leaky = leaking()
    honest, leaked = perplexity_on_noise(case, case.model()), perplexity_on_noise(case, leaky)
    # Six words of twelve, evenly drawn, then the end: no honest model knows more.
    chance = math.exp(6 / 7 * math.log(len(WORDS)))
    assert honest > 0.95 * chance
    assert leaked < 0.5 * chance


def perplexity_on_noise(case: Case, model: Model) -> float:
    """Held-out perplexity after some training on sentences of random words."""
    network, random = model.network, np.random.default_rng(0)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.05)
    for _ in range(200):
        sentences = [[WORDS[n] for n in random.integers(0, len(WORDS), 6)] for _ in range(30)]
        question = case.question(model, case.batch(sentences))
        mean = sum(network(question).values(), torch.zeros(())) / sum(question.counts.values())
        last = float(mean.detach())  # not yet trained on
        optimizer.zero_grad()
        mean.backward()
        optimizer.step()
    return math.exp(last)
