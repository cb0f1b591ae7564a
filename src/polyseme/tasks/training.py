"""One task trained with one seed: from files of examples to a finished folder.

in    settings, their examples, a seed
out   a folder with the trained task and its run log; what is finished is not redone
      curve.png      loss and error on the development data
      layers.png     the weight of each layer of the model in every mix, and gamma
      metrics.json   all figures; and the pictures of the task's family, such as confusion.png
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from polyseme.data.stream import prefetch
from polyseme.display import load_matplotlib
from polyseme.encoders.environment import Environment, describe
from polyseme.errors import ModelError
from polyseme.progress import Progress
from polyseme.storage.files import canonical_json, hold_folder, own_folder, scratch_for, write_text
from polyseme.storage.folders import MANIFEST
from polyseme.tasks.data import DataSet, Split, read_split, subsample, without_dev
from polyseme.tasks.families.family import Example, TaskBatch
from polyseme.tasks.task import Task, TaskConfig, training_config
from polyseme.tasks.texts import ExampleStats
from polyseme.training import fingerprint_of
from polyseme.training.checkpoint import Checkpoints, Outcome
from polyseme.training.loop import train
from polyseme.training.optimizer import ParamGroup, Position
from polyseme.training.runlog import NAME as RUN_LOG
from polyseme.training.runlog import draw_curve

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


@dataclass(frozen=True)
class Splits:
    """What a task learns from and is measured on while it learns."""

    train: list[Example]
    dev: list[Example]
    stats: dict[str, ExampleStats]

    @classmethod
    def read(cls, config: TaskConfig) -> "Splits":
        """The files that the settings name; the test data is not opened."""
        data, text_reader = config.data, config.text_reader()

        def read(path: Path, *, to_learn: bool) -> Split:
            return read_split(
                path, data.reader, config.network, text_reader=text_reader, to_learn=to_learn
            )

        train, own = read(data.train, to_learn=True)
        stats = {"train": own}
        if data.dev is None:
            train, dev = without_dev(train)
        else:
            dev, stats["dev"] = read(data.dev, to_learn=False)
        return cls(subsample(train, data.share), dev, stats)

    def words(self, config: TaskConfig) -> list[str]:
        """Words that may have a static vector, each once."""
        words = config.embeddings.words
        is_trained = words is not None and words.trained
        is_learned = is_trained or config.embeddings.character_labels is not None
        # A vector that is learned needs training data; one that is given does not.
        examples = self.train if is_learned else [*self.train, *self.dev]
        found = (word for example in examples for part in example.sentences for word in part)
        return list(dict.fromkeys(found))


def train_task(
    config: TaskConfig, splits: Splits, folder: Path, *, seed: int, progress: Progress
) -> Task:
    """Train, or go on with what was begun in the folder, or take what is finished there."""
    with hold_folder(own_folder(folder)):
        return _train_task(config, splits, folder, seed=seed, progress=progress)


def _train_task(
    config: TaskConfig, splits: Splits, folder: Path, *, seed: int, progress: Progress
) -> Task:
    torch.manual_seed(seed)
    task = Task.new(config, splits.train, splits.words(config))
    embeddings, family = task.module.embeddings, task.family
    for warning in embeddings.vocabulary.warnings:
        progress.log(warning)
    train_module = TaskTraining(
        task,
        DataSet(splits.train, family, embeddings, with_gold=True, progress=progress),
        DataSet(splits.dev, family, embeddings, progress=progress),
        seed=seed,
    )
    run = training_config(config, examples=len(splits.train), seed=seed)
    chosen_by = {"patience": run.patience, "evaluate_every": run.evaluate_every}
    made_from = {**train_module.fingerprint(), "run": fingerprint_of(run) | chosen_by}
    if finished := _finished(folder, made_from):
        checkpoints = Checkpoints(folder, keep=1)  # a kill may have left them, or a half-drawn plot
        checkpoints.tidy()
        checkpoints.remove_all()
        progress.log(f"{folder} is finished.")
        return finished
    outcome = train(train_module, run, folder, progress=progress)
    metadata = _metadata(task, outcome, splits.train)
    metadata |= {"seed": seed, "dev": 1 - train_module.evaluate()[ERROR], "made_from": made_from}
    task = replace(task, metadata=metadata)
    task.module.eval()
    task.save(folder)
    Checkpoints(folder, keep=1).remove_all()
    return task


def _finished(folder: Path, made_from: dict[str, Any]) -> Task | None:
    if not (folder / MANIFEST).is_file():
        return None
    task = Task.load(folder)
    if task.metadata["made_from"] != made_from:
        raise ModelError(
            f"{folder} holds a task that was trained with other settings, data or words. Choose "
            "another --out, or remove it."
        )
    return task


def _metadata(task: Task, outcome: Outcome, train: list[Example]) -> dict[str, Any]:
    """What is told of a finished run."""
    per_epoch = -(-len(train) // task.config.training.batch)
    return {
        "measure": task.config.measured_by,
        "is_on_pairs": task.family.num_texts == 2,
        "examples": len(train),
        "epochs": outcome.steps / per_epoch,
        "best_epoch": outcome.best_step / per_epoch,
        "seconds": outcome.seconds,
        "trained_parameters": sum(p.numel() for p in task.module.parameters() if p.requires_grad),
        "mixes": task.module.embeddings.mix_weights(),
    }


_COLOUR = "#2f6690"


def write_report(task: Task, folder: Path, dev: Sequence[Example]) -> list[str]:
    """Write all of it. Returns notes for the user; raises MissingExtraError without matplotlib."""
    predicted = task.decode(task.data(dev, use_cache=True))
    scores = task.family.score(dev, predicted)
    told = {name: value for name, value in task.metadata.items() if name != "made_from"}
    told |= {f"dev_{name}": rows for name, rows in scores.tables().items()}
    write_text(folder / "metrics.json", canonical_json(told))
    draw_curve(
        folder / RUN_LOG,
        folder / "curve.png",
        str(folder),
        measure=ERROR,
        label=f"1 - {task.config.measured_by} on the development data",
        scale="linear",
    )
    if task.metadata["mixes"]:
        draw_mixes(folder / "layers.png", task.metadata["mixes"])
    return task.family.draw(folder, dev, predicted)


def draw_mixes(path: Path, mixes: Mapping[str, Any]) -> None:
    """A bar for each layer, a group for each mix."""
    figure_class, _, _ = load_matplotlib()
    figure = figure_class(figsize=(1.5 + 2.5 * len(mixes), 3.2), layout="constrained")
    for axes, (place, mix) in zip(
        figure.subplots(1, len(mixes), squeeze=False)[0], mixes.items(), strict=True
    ):
        layers = range(len(mix["weights"]))
        bars = axes.bar(layers, mix["weights"], color=_COLOUR)
        axes.bar_label(bars, fmt="{:.2f}", fontsize=8)
        axes.set(title=f"{place}, gamma {mix['gamma']:.2f}", xlabel="layer", xticks=layers)
        axes.set_ylim(0, 1.05 * max(mix["weights"]) + 0.02)
    with scratch_for(path) as scratch:
        figure.savefig(scratch, dpi=120)
