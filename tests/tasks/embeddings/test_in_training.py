"""Embeddings in the training loop: stopped and continued, it ends with the same bits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from polyseme.errors import TrainingError
from polyseme.tasks.embeddings.embeddings import Embeddings, FeatureDataset
from polyseme.tasks.embeddings.features import FeatureBatch
from polyseme.training import TrainingConfig
from polyseme.training.loop import train
from polyseme.training.optimizer import ParamGroup
from tasks.embeddings.making import EMBEDDINGS, SENTENCES, embeddings_of

_KINDS = ["static vectors", "frozen at both ends", "fine-tuned at the output"]
_GRADUAL = {"kind": "finetuned", "model": "elmo", "unfreeze_after": 1, "unfreeze_every": 2}
CASES = {**{name: EMBEDDINGS[name] for name in _KINDS}, "gradual unfreezing": {"model": _GRADUAL}}


@dataclass(frozen=True)
class TaskBatch:
    """Sentences to be told apart by their length, and the step they are for."""

    features: FeatureBatch
    step: int

    @property
    def counts(self) -> Mapping[str, int]:
        return {"length": len(self.features.lengths)}

    @property
    def num_words(self) -> int:
        return self.features.num_words

    def shard(self, rank: int, world_size: int) -> "TaskBatch":
        rows = torch.arange(len(self.features.lengths)).tensor_split(world_size)[rank]
        return replace(self, features=self.features.select(rows))

    def to(self, device: str) -> "TaskBatch":
        return replace(self, features=self.features.to(device))


class Task(nn.Module):
    """Guesses the length of a sentence from the mean of its vectors."""

    def __init__(self, embeddings: Embeddings) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.guess = nn.Linear(sum(embeddings.dims), 1)

    def forward(self, batch: TaskBatch) -> dict[str, Tensor]:
        inputs = self.embeddings(batch.features, step=batch.step)
        there = [
            part
            for part in (inputs.input, inputs.after_first_layer, inputs.output)
            if part is not None
        ]
        mean = torch.cat(there, dim=-1).sum(dim=1) / batch.features.lengths[:, None]
        far = (self.guess(mean)[:, 0] - batch.features.lengths).square().sum()
        return {"length": far + self.embeddings.penalty() * len(batch.features.lengths)}


class Toy:
    """All sentences, two at a time, for ever; dies when it is told to."""

    def __init__(self, embeddings: Embeddings, dataset: FeatureDataset, dies_at: int = -1) -> None:
        torch.manual_seed(2)
        self.module = Task(embeddings)
        self._features, self._dies_at = dataset, dies_at

    def batches(self, position: Mapping[str, int]) -> Iterator[tuple[TaskBatch, dict[str, int]]]:
        step = position.get("step", 0)
        while step != self._dies_at:
            chosen = [(2 * step) % 4, (2 * step + 1) % 4]
            yield TaskBatch(self._features.gather(chosen), step), {"step": step + 1}
            step += 1
        raise TrainingError("The machine stopped.")

    def param_groups(self) -> dict[str, ParamGroup]:
        return {
            f"embeddings.{name}": group
            for name, group in self.module.embeddings.param_groups().items()
        }

    def evaluate(self) -> dict[str, float]:
        return {}

    def fingerprint(self) -> dict[str, Any]:
        return self.module.embeddings.fingerprint()

    def environment(self, *, device: str, precision: str) -> dict[str, Any]:
        return {"device": device}


def trained(
    values: Any, models: dict[str, Path], folder: Path, *, dies_at: int = -1, parts: int = 1
) -> dict[str, Tensor]:
    embeddings = embeddings_of(values, models, folder / "cache")
    toy = Toy(embeddings, embeddings.prepare(SENTENCES), dies_at)
    config = TrainingConfig(
        steps=7, save_steps=1, device="cpu", gradient_accumulation_steps=parts, warmup_ratio=0
    )
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
