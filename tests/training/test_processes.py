"""Several processes train as one does.

The number of threads, by a machine that is made up: no clock is asked.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from polyseme.errors import ConfigError, TrainingStoppedError
from polyseme.training.loop import train
from polyseme.training.processes import ThreadChoice, process_group
from training.toy import Toy, settings
from training.toy_run import SlowToy, run_together


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def test_one_then_two_then_one_then_three_processes_learn_the_same(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"steps": 40, "toy": {"dropout": 0.0}}
    train(Toy(dropout=0.0), settings(40), tmp_path / "alone")
    folder = tmp_path / "changing"
    train_until(10, folder)
    ended = run_together(2, folder, signal_at=20, **plain)
    assert [code for code, _ in ended] == [143, 143], ended
    train_until(30, folder)
    ended = run_together(3, folder, **plain)
    assert [code for code, _ in ended] == [0, 0, 0], ended
    assert len(losses(folder)) == 40
    assert losses(folder) == pytest.approx(losses(tmp_path / "alone"), rel=1e-4)


def train_until(step: int, folder: Path) -> None:
    """A part of a run in this process."""
    toy = SlowToy(dropout=0.0)
    toy.signal_at = step
    with pytest.raises(TrainingStoppedError):
        train(toy, settings(40), folder)


def test_processes_decide_alike_and_draw_the_chance_that_one_would(tmp_path: Path) -> None:
    config: dict[str, Any] = {"on_nonfinite": "skip", "patience": 9}
    ended = run_together(
        2, tmp_path / "two", steps=8, toy={"dropout": 0.5, "poison": [3]}, **config
    )
    assert [code for code, _ in ended] == [0, 0], ended
    toy = Toy(dropout=0.5, poison=(3,))
    assert (
        train(toy, settings(8, gradient_accumulation_steps=2, **config), tmp_path / "one").skipped
        == 1
    )
    two, one = losses(tmp_path / "two"), losses(tmp_path / "one")
    assert two == pytest.approx(one, rel=1e-5, nan_ok=True)


def test_one_process_needs_no_distributed_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributed, "init_process_group", None)
    assert train(Toy(), settings(2), tmp_path).steps == 2


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="Available: cpu"), process_group(settings(device="mps")):
        pass


WORDS = 1000


def seconds_alone(threads: int) -> float:
    return 1.0 / threads + 0.1


def seconds_in_company(threads: int) -> float:
    """Another program has one core: threads wait for the one that shares it."""
    return 1.0 if threads == 1 else 5.0


def run(choice: ThreadChoice, steps: int, seconds: Callable[[int], float]) -> list[int]:
    """The numbers that the steps were done with."""
    numbers = []
    for _ in range(steps):
        numbers.append(choice.number)
        choice.note(seconds(choice.number), WORDS)
    return numbers


def test_alone_all_threads_are_used_once_all_were_tried() -> None:
    numbers = run(ThreadChoice(4, is_adaptive=True), 300, seconds_alone)
    assert numbers[:6] == [4, 4, 2, 2, 1, 1]
    assert set(numbers[6:]) == {4}


def test_a_program_that_comes_costs_a_few_steps_and_then_one_core_is_left_to_it() -> None:
    choice = ThreadChoice(2, is_adaptive=True)
    run(choice, 50, seconds_alone)
    numbers = run(choice, 200, seconds_in_company)
    assert numbers.count(2) <= 12
    assert numbers[-1] == 1


def test_when_it_goes_all_threads_are_used_again() -> None:
    choice = ThreadChoice(2, is_adaptive=True)
    run(choice, 20, seconds_in_company)
    assert choice.number == 1
    assert run(choice, 300, seconds_alone)[-1] == 2


def test_where_all_is_slow_alike_nothing_is_tried_again_and_again() -> None:
    choice = ThreadChoice(2, is_adaptive=True)
    run(choice, 50, seconds_alone)
    numbers = run(choice, 1000, lambda threads: 3 * seconds_alone(threads))
    assert numbers.count(1) == 2
