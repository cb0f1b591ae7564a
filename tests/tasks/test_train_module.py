"""A task's batches as the loop sees them: in another order in every epoch and with every seed."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np

from polyseme.tasks.train_module import TaskTraining
from polyseme.training.train_module import Position


class Rows:
    """Twelve rows in three batches; a batch is its rows and the number of the step."""

    def shuffled(self, size: int, random: np.random.Generator) -> list[tuple[int, ...]]:
        order = random.permutation(12).tolist()
        return [tuple(order[begin : begin + size]) for begin in range(0, 12, size)]

    def batch(self, chosen: tuple[int, ...], step: int) -> tuple[tuple[int, ...], int]:
        return chosen, step


def batches(position: Position, number: int, seed: int = 1) -> list[Any]:
    task: Any = SimpleNamespace(
        module=None, config=SimpleNamespace(training=SimpleNamespace(batch=4))
    )
    rows: Any = Rows()
    stream = TaskTraining(task, rows, rows, seed=seed).batches(position)
    return list(itertools.islice(stream, number))


def test_every_epoch_has_all_rows_in_an_order_of_its_own_and_of_its_seed() -> None:
    orders = set()
    for seed in (1, 2, 3):
        found = [chosen for (chosen, _), _ in batches({}, 9, seed)]
        for epoch in range(3):
            order = tuple(itertools.chain(*found[3 * epoch : 3 * epoch + 3]))
            assert sorted(order) == list(range(12))
            orders.add(order)
    assert len(orders) == 9


def test_steps_are_counted_over_epochs() -> None:
    assert [step for (_, step), _ in batches({}, 7)] == list(range(7))


def test_batches_go_on_from_any_position_as_if_never_stopped() -> None:
    whole = batches({}, 8)
    for done in range(1, 8):
        assert batches(whole[done - 1][1], 8 - done) == whole[done:]
