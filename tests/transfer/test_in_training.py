"""A feed in the training loop: stopped and continued, it ends with the same bits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from polyseme.errors import TrainingError
from polyseme.training.loop import train
from polyseme.training.optimizer import ParamGroup
from polyseme.training.settings import TrainingConfig
from polyseme.transfer.fed import Given
from polyseme.transfer.feed import Feed
from polyseme.transfer.supply import Supply
from transfer.making import FEEDS, SENTENCES, feed_of

_KINDS = ["static vectors", "frozen at both ends", "fine-tuned at the output"]
_WAKES = {"kind": "finetuned", "model": "elmo", "wakes_at": 1, "wakes_every": 2}
CASES = {**{name: FEEDS[name] for name in _KINDS}, "waking": {"model": _WAKES}}


@dataclass(frozen=True)
class TaskBatch:
    """Sentences to be told apart by their length, and the step they are for."""

    given: Given
    step: int

    @property
    def counts(self) -> Mapping[str, int]:
        return {"length": len(self.given.lengths)}

    @property
    def num_words(self) -> int:
        return self.given.num_words

    def share(self, number: int, of: int) -> "TaskBatch":
        rows = torch.arange(len(self.given.lengths)).tensor_split(of)[number]
        return replace(self, given=self.given.select(rows))

    def to(self, device: str) -> "TaskBatch":
        return replace(self, given=self.given.to(device))


class Task(nn.Module):
    """Guesses the length of a sentence from the mean of its vectors."""

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self.feed = feed
        self.guess = nn.Linear(sum(feed.widths), 1)

    def forward(self, batch: TaskBatch) -> dict[str, Tensor]:
        fed = self.feed(batch.given, step=batch.step)
        there = [part for part in (fed.first, fed.middle, fed.last) if part is not None]
        mean = torch.cat(there, dim=-1).sum(dim=1) / batch.given.lengths[:, None]
        far = (self.guess(mean)[:, 0] - batch.given.lengths).square().sum()
        return {"length": far + self.feed.penalty() * len(batch.given.lengths)}


class Toy:
    """All sentences, two at a time, for ever; dies when it is told to."""

    def __init__(self, feed: Feed, supply: Supply, dies_at: int = -1) -> None:
        torch.manual_seed(2)
        self.module = Task(feed)
        self._supply, self._dies_at = supply, dies_at

    def batches(self, position: Mapping[str, int]) -> Iterator[tuple[TaskBatch, dict[str, int]]]:
        step = position.get("step", 0)
        while step != self._dies_at:
            chosen = [(2 * step) % 4, (2 * step + 1) % 4]
            yield TaskBatch(self._supply.gather(chosen), step), {"step": step + 1}
            step += 1
        raise TrainingError("The machine stopped.")

    def param_groups(self) -> dict[str, ParamGroup]:
        return {f"feed.{name}": rate for name, rate in self.module.feed.param_groups().items()}

    def evaluate(self) -> dict[str, float]:
        return {}

    def fingerprint(self) -> dict[str, Any]:
        return self.module.feed.fingerprint()

    def environment(self, *, device: str, precision: str) -> dict[str, Any]:
        return {"device": device}


def trained(
    values: Any, models: dict[str, Path], folder: Path, *, dies_at: int = -1, parts: int = 1
) -> dict[str, Tensor]:
    feed = feed_of(values, models, folder / "cache")
    toy = Toy(feed, feed.prepare(SENTENCES), dies_at)
    config = TrainingConfig(steps=7, save_steps=1, device="cpu", accumulate=parts, warmup=0)
    train(toy, config, folder / "run")
    return toy.module.state_dict()


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_stopped_and_continued_ends_with_the_same_bits(
    values: Any, models: dict[str, Path], tmp_path: Path
) -> None:
    expected = trained(values, models, tmp_path / "whole")
    with pytest.raises(TrainingError, match="The machine stopped"):
        trained(values, models, tmp_path / "cut", dies_at=4)
    found = trained(values, models, tmp_path / "cut")
    assert all(torch.equal(weight, found[name]) for name, weight in expected.items())


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_a_batch_worked_through_in_parts_learns_the_same(
    values: Any, models: dict[str, Path], tmp_path: Path
) -> None:
    plain = {**values, "mix": {"dropout": 0}}
    whole = trained(plain, models, tmp_path / "whole")
    parts = trained(plain, models, tmp_path / "parts", parts=2)
    for name, weight in whole.items():
        assert torch.allclose(weight, parts[name], atol=1e-4), name
