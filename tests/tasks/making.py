"""Small data that can be learnt, and the kinds of task that laws run over."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from laws.cases import WORDS
from transfer.making import MODELS, save_model, with_folders

from polyseme.config import build
from polyseme.tasks.data import DataSet
from polyseme.tasks.examples import Classified, Example, Paired, Tagged, Words
from polyseme.tasks.settings import TaskConfig
from polyseme.tasks.task import Task

__all__ = ["MODELS", "TASKS", "config_of", "examples_for", "save_model", "task_of"]
_TABLE = {"vectors": {"kind": "new", "width": 12}, "trained": True}
_FROZEN = {"kind": "frozen", "model": "elmo"}
_FEEDS: dict[str, dict[str, Any]] = {
    "static": {"words": _TABLE},
    "frozen": {"words": _TABLE, "model": _FROZEN, "place": "both"},
    "taglm": {"words": _TABLE, "model": _FROZEN, "place": "middle", "mix": {"only": -1}},
    "finetuned": {"model": {"kind": "finetuned", "model": "elmo", "rate": 1.0}},
}
_GPT = {"model": {"kind": "finetuned", "model": "gpt", "rate": 1.0, "rate_below": 1.0}}
_BERT = {"model": {"kind": "finetuned", "model": "bert", "rate": 1.0, "rate_below": 1.0}}
_CONTEXT = {"width": 16, "dropout": 0.1}
_DEEP = {"layers": 2, **_CONTEXT}
TASKS: dict[str, dict[str, Any]] = {
    "names, static": {"feed": _FEEDS["static"], "network": {"kind": "tagging"}},
    "names, frozen": {"feed": _FEEDS["frozen"], "network": {"kind": "tagging", "scheme": "bioes"}},
    "names, taglm": {"feed": _FEEDS["taglm"], "network": {"kind": "tagging", "context": _DEEP}},
    "names, taglm on one layer": {"feed": _FEEDS["taglm"], "network": {"kind": "tagging"}},
    "names, finetuned": {"feed": _FEEDS["finetuned"], "network": {"kind": "tagging"}},
    "words": {"feed": _FEEDS["frozen"], "network": {"kind": "tagging", "scheme": "none"}},
    "roles": {
        "feed": _FEEDS["frozen"],
        "network": {"kind": "tagging", "is_marked": True, "leave_out": ["V"]},
    },
    "texts, frozen": {"feed": _FEEDS["frozen"], "network": {"kind": "classification"}},
    "texts, deep": {
        "feed": _FEEDS["frozen"],
        "network": {"kind": "classification", "context": _DEEP},
    },
    "senses": {
        "feed": _FEEDS["finetuned"],
        "network": {"kind": "classification", "is_marked": True},
    },
    "pairs, static": {"feed": _FEEDS["static"], "network": {"kind": "pairs"}},
    "pairs, frozen": {"feed": _FEEDS["frozen"], "network": {"kind": "pairs"}},
    "joined texts, gpt": {"feed": _GPT, "network": {"kind": "joined"}},
    "joined pairs, bert": {
        "feed": _BERT,
        "network": {"kind": "joined", "takes": "start", "both_orders": True},
    },
}
"""Settings of every kind of task; `model` is the name of one of MODELS."""


def config_of(name: str, models: dict[str, Path], cache: Path, **training: Any) -> TaskConfig:
    """The settings of one of TASKS."""
    values = with_folders(TASKS[name], models)
    if values["feed"].get("model", {}).get("kind") == "frozen":
        values["feed"]["model"] = {"cache": {"folder": cache}, **values["feed"]["model"]}
    if "mix" not in values["feed"]:
        values["feed"]["mix"] = {"dropout": 0.1}
    if values["network"]["kind"] != "joined":
        values["network"] = {"context": _CONTEXT, **values["network"]}
    # The files are read nowhere: examples are made below.
    data = {"train": "train", "reader": {"kind": "columns"}}
    run = {"device": "cpu", "batch": 4, "epochs": 2, "learning_rate": 0.01, **training}
    return build(TaskConfig, {**values, "data": data, "training": run})


def examples_for(name: str, number: int = 20, seed: int = 5) -> list[Example]:
    """Examples whose labels follow a rule that each kind of network can find."""
    random = np.random.default_rng(seed)
    make: dict[str, Callable[[Words], Example]] = {
        "names": _names,
        "words": lambda words: Tagged(words, tuple(word[:2].upper() for word in words)),
        "roles": _roles,
        "texts": lambda words: Classified(words, words[0][:2]),
        "senses": lambda words: Classified(words, words[-1][:2], len(words) - 1),
        "joined texts": lambda words: Classified(words, words[-1][:2]),
    }
    kind = name.partition(",")[0]
    if "pairs" in kind:
        return [_pair(_words(random), _words(random)) for _ in range(number)]
    return [make[kind](_words(random)) for _ in range(number)]


def _words(random: np.random.Generator) -> Words:
    return tuple(WORDS[n] for n in random.integers(len(WORDS), size=random.integers(1, 7)))


def _names(words: Words) -> Tagged:
    """Every run of words with `ba` or `no` is a span of that kind."""
    labels: list[str] = []
    for place, word in enumerate(words):
        kind = word[:2]
        goes_on = place > 0 and labels[-1].endswith(kind)
        labels.append("O" if kind not in ("ba", "no") else f"{'I' if goes_on else 'B'}-{kind}")
    return Tagged(words, tuple(labels))


def _roles(words: Words) -> Tagged:
    """The word before the marked one does it."""
    marked = len(words) // 2
    labels = ["O"] * len(words)
    labels[marked] = "B-V"
    if marked:
        labels[marked - 1] = "B-ARG0"
    return Tagged(words, tuple(labels), marked)


def _pair(first: Words, second: Words) -> Paired:
    return Paired(first, second, "long" if len(first) + len(second) > 7 else "short")


def task_of(config: TaskConfig, examples: list[Example]) -> tuple[Task, DataSet]:
    """An untrained task, the same at every call, and its training data."""
    torch.manual_seed(3)
    task = Task.new(config, examples, WORDS)
    data = DataSet(examples, config.network, task.module.feed, labels=task.labels)
    return task, data
