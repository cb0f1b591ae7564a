"""A task and its data, as the training loop sees them."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np

from polyseme.data.prefetch import prefetch
from polyseme.encoders.environment import Environment, describe
from polyseme.storage.files import canonical_json
from polyseme.tasks.data import DataSet
from polyseme.tasks.families.family import Example, TaskBatch
from polyseme.tasks.task import Task
from polyseme.training.optimizer import ParamGroup
from polyseme.training.train_module import Position

ERROR = "error"
"""What is measured on the way and made small: 1 less the task's measure."""


class TaskTraining:
    """Learns from one data set, is measured on another."""

    def __init__(self, task: Task, train: DataSet, dev: DataSet, *, seed: int) -> None:
        self.task, self.module = task, task.module
        self._train, self._dev, self._seed = train, dev, seed

    def batches(self, position: Position) -> Iterator[tuple[TaskBatch, Position]]:
        """Epoch after epoch, each in an order of its own."""
        return prefetch(self._batches(position))

    def _batches(self, position: Position) -> Iterator[tuple[TaskBatch, Position]]:
        epoch, number, step = (position.get(name, 0) for name in ("epoch", "batch", "step"))
        size = self.task.config.training.batch
        while True:
            chosen = self._train.shuffled(size, np.random.default_rng([self._seed, epoch]))
            for place in range(number, len(chosen)):
                after = {"epoch": epoch, "batch": place + 1, "step": step + 1}
                yield self._train.batch(chosen[place], step), after
                step += 1
            epoch, number = epoch + 1, 0

    def param_groups(self) -> dict[str, ParamGroup]:
        """The embeddings'; the network's own parameters are trained alike."""
        return {
            f"embeddings.{name}": group
            for name, group in self.module.embeddings.param_groups().items()
        }

    def evaluate(self) -> dict[str, float]:
        """How far from right on the development data."""
        scores = self.task.evaluate(self._dev)
        return {ERROR: 1 - scores.value(self.task.config.measured_by)}

    def environment(self, *, device: str, precision: str) -> Environment:
        """Versions, threads, processor, kernel."""
        return describe(device=device, precision=precision)

    def fingerprint(self) -> dict[str, Any]:
        """Settings, words and labels; paths may change."""
        config = self.task.config
        return {
            "embeddings": self.module.embeddings.fingerprint(),
            "network": config.network.model_dump(mode="json"),
            "training": config.training.model_dump(mode="json", include={"batch"}),
            **self.task.family.to_json(),
            "train": _hash(self._train.examples),
            "dev": _hash(self._dev.examples),
        }


def _hash(examples: Sequence[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        told = {part.name: getattr(example, part.name) for part in fields(cast(Any, example))}
        digest.update(canonical_json(told).encode())
    return digest.hexdigest()
