"""One task trained with one seed: from files of examples to a finished folder.

in    settings, their examples, a seed
out   a folder with the trained task, its run log and its pictures; what is finished is not redone
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from polyseme.engines import hold_folder
from polyseme.errors import ModelError
from polyseme.files import own_folder
from polyseme.folders import MANIFEST
from polyseme.progress import Progress
from polyseme.tasks.account import Account
from polyseme.tasks.data import DataSet, Split, read_split, sentences_of, thin, without_dev
from polyseme.tasks.examples import Example, Paired
from polyseme.tasks.settings import TaskConfig, training_config
from polyseme.tasks.task import Task
from polyseme.tasks.train_module import ERROR, TaskTraining
from polyseme.training.checkpoint import Checkpoints
from polyseme.training.loop import train
from polyseme.training.settings import numbers_of
from polyseme.training.state import Outcome


@dataclass(frozen=True)
class Material:
    """What a task learns from and is measured on while it learns."""

    train: list[Example]
    dev: list[Example]
    accounts: dict[str, Account]

    @classmethod
    def read(cls, config: TaskConfig) -> "Material":
        """The files that the settings name; the test data is not opened."""
        data, words_like = config.data, config.words_like

        def read(path: Path, *, to_learn: bool) -> Split:
            return read_split(
                path, data.reader, config.network, words_like=words_like, to_learn=to_learn
            )

        train, account = read(data.train, to_learn=True)
        accounts = {"train": account}
        if data.dev is None:
            train, dev = without_dev(train)
        else:
            dev, accounts["dev"] = read(data.dev, to_learn=False)
        return cls(thin(train, data.share), dev, accounts)

    def words(self, config: TaskConfig) -> list[str]:
        """Words that may have a static vector, each once."""
        feed = config.feed
        is_learned = feed.units is not None or (feed.words is not None and feed.words.trained)
        # A vector that is learned needs training data; one that is given does not.
        examples = self.train if is_learned else [*self.train, *self.dev]
        found = (word for example in examples for part in sentences_of(example) for word in part)
        return list(dict.fromkeys(found))


def learn(
    config: TaskConfig, material: Material, folder: Path, *, seed: int, progress: Progress
) -> Task:
    """Train, or go on with what was begun in the folder, or take what is finished there."""
    with hold_folder(own_folder(folder)):
        return _learn(config, material, folder, seed=seed, progress=progress)


def _learn(
    config: TaskConfig, material: Material, folder: Path, *, seed: int, progress: Progress
) -> Task:
    torch.manual_seed(seed)
    task = Task.new(config, material.train, material.words(config))
    feed, network = task.module.feed, config.network
    for complaint in feed.known.complaints:
        progress.log(complaint)
    train_module = TaskTraining(
        task,
        DataSet(material.train, network, feed, labels=task.labels, progress=progress),
        DataSet(material.dev, network, feed, progress=progress),
        seed=seed,
    )
    run = training_config(config, examples=len(material.train), seed=seed)
    chosen_by = {"patience": run.patience, "evaluate_every": run.evaluate_every}
    made_from = {**train_module.fingerprint(), "run": numbers_of(run) | chosen_by}
    if finished := _finished(folder, made_from):
        Checkpoints(folder, keep=1).remove_all()  # a kill may have left them
        progress.log(f"{folder} is finished.")
        return finished
    outcome = train(train_module, run, folder, progress=progress)
    facts = _facts(task, outcome, material.train)
    facts |= {"seed": seed, "dev": 1 - train_module.evaluate()[ERROR], "made_from": made_from}
    task = replace(task, facts=facts)
    task.module.eval()
    task.save(folder)
    Checkpoints(folder, keep=1).remove_all()
    return task


def _finished(folder: Path, made_from: dict[str, Any]) -> Task | None:
    if not (folder / MANIFEST).is_file():
        return None
    task = Task.load(folder)
    if task.facts["made_from"] != made_from:
        raise ModelError(
            f"{folder} holds a task that was trained with other settings, data or words. Choose "
            "another --out, or remove it."
        )
    return task


def _facts(task: Task, outcome: Outcome, train: list[Example]) -> dict[str, Any]:
    """What is told of a finished run."""
    per_epoch = -(-len(train) // task.config.training.batch)
    return {
        "measure": task.config.measured_by,
        "is_on_pairs": isinstance(train[0], Paired),
        "examples": len(train),
        "epochs": outcome.steps / per_epoch,
        "best_epoch": outcome.best_step / per_epoch,
        "seconds": outcome.seconds,
        "trained_parameters": sum(p.numel() for p in task.module.parameters() if p.requires_grad),
        "mixes": task.module.feed.told(),
    }
