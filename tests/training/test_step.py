"""Chance in a step: another at every step, in every share of the batch and with every seed.

The guard: what it stops, and what it must let pass.

Parameters that are trained each in its own way, and the learning rate over a run.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from polyseme.errors import TrainingError
from polyseme.training.optimizer import (
    Losses,
    ParamGroup,
    build_optimizer,
    learning_rate_at,
    set_learning_rate,
)
from polyseme.training.processes import DistributedContext
from polyseme.training.step import LossSpikeGuard, Stepper, shard_seed
from training.toy import Toy, ToyBatch, make_batch, settings


def test_every_seed_step_and_share_has_chance_of_its_own() -> None:
    numbers = [shard_seed(*place) for place in itertools.product(range(5), range(5), range(5))]
    assert len(set(numbers)) == 125
    assert all(0 <= number < 2**63 for number in numbers)
    assert shard_seed(1, 12, 3) != shard_seed(11, 2, 3)


class Gambler(nn.Module):
    """Notes what it draws."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.drawn: list[Tensor] = []

    def forward(self, batch: ToyBatch) -> Losses:
        self.drawn.append(torch.rand(4))
        rows = batch.rows @ self.weight
        return {"sum": rows.sum(), "sign": rows.sum()}


@dataclass
class Drawn:
    """What modules have drawn, by seed, step and share."""

    rows: dict[tuple[int, int, int], tuple[float, ...]] = field(default_factory=dict)

    def run(self, seed: int, shares: int) -> "Drawn":
        module = Gambler()
        config = settings(seed=seed, gradient_accumulation_steps=shares)
        stepper = Stepper(module, config, DistributedContext(0, 1, "cpu"))
        for step in range(3):
            module.drawn.clear()
            stepper.forward_backward(make_batch(0), step=step, wants_stop=False)
            for share, row in enumerate(module.drawn):
                self.rows[seed, step, share] = tuple(row.tolist())
        return self


def test_no_two_steps_shares_or_seeds_draw_the_same() -> None:
    drawn = Drawn()
    for seed in (1, 2, 3):
        drawn.run(seed, shares=4)
    assert len(drawn.rows) == 3 * 3 * 4
    assert len(set(drawn.rows.values())) == len(drawn.rows)


def test_dropout_leaves_out_others_at_every_step_and_with_every_seed() -> None:
    losses = []
    for seed in (1, 2):
        stepper = Stepper(Toy().module, settings(seed=seed), DistributedContext(0, 1, "cpu"))
        losses += [
            stepper.forward_backward(make_batch(0), step=step, wants_stop=False).loss
            for step in (0, 1, 2)
        ]
    assert len(set(losses)) == 6


def alarms(losses: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> int:
    guard = LossSpikeGuard("skip")
    return sum(not guard.check(float(one), 1.0, step=i) for i, one in enumerate(losses))


def steady(number: int) -> LossSpikeGuard:
    guard = LossSpikeGuard("skip")
    for i in range(number):
        assert guard.check(5.0 + 0.1 * math.sin(i), 1.0, step=i)
    return guard


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_stopped_from_the_first_step(loss: float) -> None:
    assert not LossSpikeGuard("skip").check(loss, 1.0, step=1)
    with pytest.raises(TrainingError, match="before step 1: the loss is"):
        LossSpikeGuard("raise").check(loss, 1.0, step=1)


@pytest.mark.parametrize("norm", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_stopped(norm: float) -> None:
    with pytest.raises(TrainingError, match="norm of the gradient"):
        LossSpikeGuard("raise").check(1.0, norm, step=1)


def test_a_spike_is_stopped_once_the_window_is_full() -> None:
    assert steady(127).check(10.0, 1.0, step=128)
    assert not steady(128).check(10.0, 1.0, step=129)


def test_a_loss_stopped_does_not_widen_the_window() -> None:
    guard = steady(128)
    before = guard.losses
    assert not guard.check(50.0, 1.0, step=129)
    assert guard.losses == before
    assert guard.check(5.0, 1.0, step=130)


def test_a_slow_rise_over_a_flat_window_is_no_spike() -> None:
    assert alarms(np.concatenate([np.full(200, 5.0), np.linspace(5.0, 6.0, 100)])) == 0
    assert alarms(np.array([*np.full(200, 5.0), 5.9, 6.0, 6.2])) == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", ["normal", "falling", "long tail", "overfit"])
def test_there_is_at_most_one_false_alarm_in_ten_thousand_steps(shape: str, seed: int) -> None:
    chance = np.random.default_rng(seed)
    steps = np.arange(10_000)
    losses = {
        "normal": 5 + 0.3 * chance.normal(size=10_000),
        "falling": 3 + 7 * np.exp(-steps / 1000) + 0.2 * chance.normal(size=10_000),
        # Mean of a few squares, as tiny batches give it.
        "long tail": chance.chisquare(4, size=10_000),
        "overfit": 1e-5 * np.exp(chance.normal(size=10_000)),
    }[shape]
    assert alarms(losses) <= 1


@pytest.mark.parametrize("shape", ["normal", "long tail"])
def test_a_true_spike_is_seen_in_each_of_a_hundred_windows(shape: str) -> None:
    for seed in range(100):
        chance = np.random.default_rng(seed)
        usual = {
            "normal": 5 + 0.3 * chance.normal(size=128),
            "long tail": chance.chisquare(24, 128),
        }
        assert alarms(np.array([*usual[shape], 10 * usual[shape].mean()])) == 1


def test_the_window_goes_on_where_it_was_saved() -> None:
    guard = steady(200)
    again = LossSpikeGuard("skip", guard.losses, guard.consecutive_skips)
    assert not again.check(10.0, 1.0, step=201)
    assert again.losses == guard.losses


def moved(
    param_groups: dict[str, ParamGroup], *, gradient: float, weight_decay: float = 0.0
) -> dict[str, float]:
    """How far one step at a learning rate of 0.5 takes each parameter of ones."""
    module = nn.Linear(3, 2)
    for parameter in module.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.full_like(parameter, gradient)
    optimizer = build_optimizer(module, settings(weight_decay=weight_decay), param_groups)
    set_learning_rate(optimizer, 0.5)
    optimizer.step()
    return {name: 1 - float(p.detach().mean()) for name, p in module.named_parameters()}


def test_a_parameter_moves_by_its_own_share_of_the_learning_rate() -> None:
    # Adam's first step is the learning rate, whatever the gradient.
    found = moved({"weight": ParamGroup(lr_scale=0.1)}, gradient=2.0)
    assert found == pytest.approx({"weight": 0.05, "bias": 0.5}, rel=1e-5)


def test_weight_decay_is_at_the_parameter_s_own_rate_too() -> None:
    found = moved({"weight": ParamGroup(lr_scale=0.1)}, gradient=0.0, weight_decay=0.2)
    assert found == pytest.approx({"weight": 0.5 * 0.1 * 0.2, "bias": 0.0}, rel=1e-5)


def test_the_biases_of_stacked_lstms_do_not_decay() -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(2, 3, 4))
    module.bias = nn.Parameter(torch.ones(2, 4))
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = build_optimizer(module, settings(weight_decay=0.2))
    set_learning_rate(optimizer, 0.5)
    optimizer.step()
    assert torch.allclose(module.weight, torch.tensor(0.9))
    assert torch.equal(module.bias, torch.ones(2, 4))


def test_what_is_frozen_is_not_in_the_optimizer() -> None:
    module = nn.Linear(3, 2)
    module.weight.requires_grad_(False)
    optimizer = build_optimizer(module, settings())
    assert [p for group in optimizer.param_groups for p in group["params"]] == [module.bias]
    module.bias.requires_grad_(False)
    with pytest.raises(TrainingError, match="every parameter is frozen"):
        build_optimizer(module, settings())


# The learning rate over a run


def rates(**others: object) -> list[float]:
    config = settings(100, learning_rate=1.0, **others)
    return [learning_rate_at(step, config) for step in range(100)]


@pytest.mark.parametrize("decay", ["cosine", "linear", "none"])
def test_the_rate_rises_evenly_to_its_highest(decay: str) -> None:
    rising = rates(warmup_ratio=0.1, decay=decay)[:10]
    assert rising == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_the_cosine_is_half_way_down_half_way_through() -> None:
    assert rates(warmup_ratio=0.0, decay="cosine")[50] == pytest.approx(0.5)
    assert 0 < rates(warmup_ratio=0.0, decay="cosine")[-1] < 0.001


def test_the_line_is_straight() -> None:
    assert rates(warmup_ratio=0.0, decay="linear")[25] == pytest.approx(0.75)
