"""Nothing sees what it is to predict. One break of this and perplexity means nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from laws.cases import DIM, SENTENCES, WORDS, Case, every_case, make
from laws.looking import edited, edits, what_peeked
from polyseme.data.batch import Batch
from polyseme.model import Model
from polyseme.objectives.prediction import TrainingTargets

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
def test_what_predicts_a_target_does_not_change_with_the_target(case: Case) -> None:
    if case.config.objective.kind == "masked":
        told = {"mask_token_share": 1.0, "random_token_share": 0.0}
        objective = case.config.objective.model_copy(update=told)
        case = replace(case, config=case.config.model_copy(update={"objective": objective}))
    model, batch = case.model(), case.batch()
    targets = case.targets(model)
    for part, wanted in targets.parts.items():
        if part == "next_sentence":
            continue
        for place in range(0, len(wanted.rows), 3):
            row, column = int(wanted.rows[place]), int(wanted.columns[place])
            target = _column_of(part, column, wanted.ids[place], batch.ids[batch.words[row]])
            words = batch.words.clone()
            words[row, target] = words[row, target] % (len(batch.ids) - 1) + 1
            other = case.targets(model, replace(batch, words=words))
            before = _vectors(model, targets.batch, targets, part)[place]
            after = _vectors(model, other.batch, targets, part)[place]
            assert torch.equal(before, after), (part, row, column)


def _column_of(part: str, column: int, target: Tensor, row: Tensor) -> int:
    """Where the target stands that is to be predicted from `column`."""
    if part in ("forward", "backward"):
        return column + (1 if part == "forward" else -1)
    if int(row[column]) == int(target):
        return column  # the word itself: masked, CBOW
    near = (row == target).nonzero().squeeze(1)
    return int(near[(near - column).abs().argmin()])


@torch.no_grad()
def _vectors(model: Model, batch: Batch, targets: TrainingTargets, part: str) -> Tensor:
    """(N, D) the vectors that are to predict the targets, this batch being read."""
    network = model.network
    return network.objective.predict(lambda _: network.encoder(batch), targets)[part].vectors


class Leaking(nn.Module):
    """What ELMo is often mistaken for: the second layer reads both directions of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.below = nn.LSTM(DIM, DIM, bidirectional=True, batch_first=True)
        self.above = nn.LSTM(2 * DIM, DIM, bidirectional=True, batch_first=True)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        below, _ = self.below(vectors)
        above, _ = self.above(below)
        return below, above


def leaking() -> tuple[Case, Model]:
    case = make("lstm", "separate", "bidirectional", "word", "full")
    model = case.model()
    model.network.encoder.contextualizer = Leaking()  # type: ignore[assignment]
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
        targets = case.targets(model, case.batch(sentences))
        mean = sum(network(targets).values(), torch.zeros(())) / sum(targets.counts.values())
        last = float(mean.detach())  # not yet trained on
        optimizer.zero_grad()
        mean.backward()
        optimizer.step()
    return math.exp(last)
