"""How fast a run would go: timed by real steps, and not for longer than the run itself."""

from pathlib import Path
from typing import Any

import pytest

from polyseme.pretraining.throughput import measure_throughput
from polyseme.training.settings import TrainingConfig
from polyseme.training.step import Stepper
from pretraining.making import rule_corpus, tiny_train_module


def test_timing_ends_with_the_second_step_if_there_is_no_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    take = Stepper.optimizer_step

    def count(self: Stepper, *given: Any) -> Any:
        steps.append(1)
        return take(self, *given)

    monkeypatch.setattr(Stepper, "optimizer_step", count)
    train_module = tiny_train_module(rule_corpus(tmp_path))
    config = TrainingConfig(steps=1, device="cpu")
    assert measure_throughput(train_module, config, max_seconds=0).seconds > 0
    assert len(steps) == 2
    steps.clear()
    measure_throughput(train_module, config, steps=4)
    assert len(steps) == 7  # three to warm up
