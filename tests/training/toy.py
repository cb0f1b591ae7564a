"""A thing to train that needs no language: points on a plane, a small net with dropout."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from polyseme.training import TrainingConfig
from polyseme.training.optimizer import Losses, ParamGroup, Position


@dataclass(frozen=True)
class ToyBatch:
    """Rows of numbers and what is to be said of each; the second part asks every other row."""

    rows: Tensor
    sums: Tensor
    asks: Tensor
    """Whether a row takes part in the second loss."""

    @property
    def counts(self) -> dict[str, int]:
        return {"sum": len(self.rows), "sign": int(self.asks.sum())}

    @property
    def num_words(self) -> int:
        return len(self.rows)

    def shard(self, rank: int, world_size: int) -> "ToyBatch":
        return ToyBatch(
            self.rows[rank::world_size], self.sums[rank::world_size], self.asks[rank::world_size]
        )

    def to(self, device: str) -> "ToyBatch":
        return ToyBatch(self.rows.to(device), self.sums.to(device), self.asks.to(device))


class ToyNet(nn.Module):
    """Two heads over a hidden layer with dropout."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, width)
        self.drop = nn.Dropout(dropout)
        self.heads = nn.Linear(width, 2)

    def forward(self, batch: ToyBatch) -> Losses:
        out = self.heads(self.drop(self.hidden(batch.rows).tanh()))  # (B, 2)
        sign = nn.functional.softplus(-out[:, 1] * batch.sums.sign())
        return {
            "sum": (out[:, 0] - batch.sums).square().sum(),
            "sign": (sign * batch.asks).sum(),
        }


class Toy:
    """Batches are made from a counter, so that the position is that counter."""

    def __init__(
        self, *, width: int = 16, dropout: float = 0.2, poison: tuple[int, ...] = ()
    ) -> None:
        torch.manual_seed(7)
        self.net = ToyNet(width, dropout)
        self.width, self.dropout, self.poison = width, dropout, poison
        self.seen: list[int] = []
        self.measures: list[float] = []
        """What `evaluate` is to say next; the true value when none are left."""

    @property
    def module(self) -> nn.Module:
        return self.net

    def batches(self, position: Position) -> Iterator[tuple[ToyBatch, Position]]:
        number = position.get("batch", 0)
        while True:
            batch = make_batch(number)
            if number in self.poison:
                batch = replace(batch, rows=batch.rows * float("nan"))
            self.seen.append(number)
            number += 1
            yield batch, {"batch": number}

    def evaluate(self) -> dict[str, float]:
        if self.measures:
            return {"error": self.measures.pop(0)}
        batch = make_batch(10**6)
        sums = self.net(batch)
        return {name: float(sums[name]) / n for name, n in batch.counts.items()}

    def param_groups(self) -> dict[str, ParamGroup]:
        return {}

    def fingerprint(self) -> dict[str, Any]:
        return {"net": {"width": self.width, "dropout": self.dropout}}

    def environment(self, *, device: str, precision: str) -> dict[str, Any]:
        return {"torch": torch.__version__, "threads": torch.get_num_threads(), "device": device}


def make_batch(number: int, size: int = 12) -> ToyBatch:
    chance = np.random.default_rng(number)
    rows = chance.normal(size=(size, 8)).astype(np.float32)
    asks = torch.arange(size) % 2 == 0
    return ToyBatch(torch.from_numpy(rows), torch.from_numpy(rows.sum(axis=1)), asks)


def settings(steps: int = 20, **others: Any) -> TrainingConfig:
    values = {"learning_rate": 0.01, "evaluate_every": 7, "device": "cpu", **others}
    return TrainingConfig(steps=steps, **values)


def digests(module: nn.Module) -> dict[str, str]:
    """SHA-256 of every tensor of a module."""
    return {name: digest(tensor) for name, tensor in module.state_dict().items()}


def saved_digests(folder: Path, step: int) -> dict[str, str]:
    """SHA-256 of every tensor a checkpoint holds, the optimizer's too."""
    place = folder / "checkpoints" / f"step-{step:09d}"
    return {
        f"{name}:{key}": digest(tensor)
        for name in ("weights", "optimizer")
        for key, tensor in load_file(place / f"{name}.safetensors").items()
    }


def digest(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
