"""Chance in a step: another at every step, in every share of the batch and with every seed."""

import itertools
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from polyseme.training.processes import DistributedContext
from polyseme.training.step import Stepper, shard_seed
from polyseme.training.train_module import Losses
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


def test_the_same_place_draws_the_same() -> None:
    assert Drawn().run(2, shares=3).rows == Drawn().run(2, shares=3).rows


def test_dropout_leaves_out_others_at_every_step_and_with_every_seed() -> None:
    losses = []
    for seed in (1, 2):
        stepper = Stepper(Toy().module, settings(seed=seed), DistributedContext(0, 1, "cpu"))
        losses += [
            stepper.forward_backward(make_batch(0), step=step, wants_stop=False).loss
            for step in (0, 1, 2)
        ]
    assert len(set(losses)) == 6
