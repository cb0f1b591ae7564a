"""One task trained with one seed: from files of examples to a finished folder.

in    settings, their examples, a seed
out   a folder with the trained task, its run log and its pictures; what is finished is not redone
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from polyseme.errors import ModelError
from polyseme.progress import Progress
from polyseme.storage.files import own_folder
from polyseme.storage.folders import MANIFEST
from polyseme.storage.locks import hold_folder
from polyseme.tasks.data import DataSet, Split, read_split, subsample, without_dev
from polyseme.tasks.example_stats import ExampleStats
from polyseme.tasks.families.family import Example
from polyseme.tasks.settings import TaskConfig, training_config
from polyseme.tasks.task import Task
from polyseme.tasks.train_module import ERROR, TaskTraining
from polyseme.training.checkpoint import Checkpoints
from polyseme.training.loop import train
from polyseme.training.settings import fingerprint_of
from polyseme.training.state import Outcome


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
