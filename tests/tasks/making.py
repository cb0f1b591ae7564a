"""Small data that can be learnt, and the kinds of task that laws run over."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from laws.cases import WORDS

from polyseme.config import build
from polyseme.tasks.data import DataSet
from polyseme.tasks.families.choice import Choices
from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.coreference import Document
from polyseme.tasks.families.family import Example
from polyseme.tasks.families.question_answering import Answer, Question
from polyseme.tasks.families.seq2seq import Translated
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.task import Task, TaskConfig
from polyseme.tasks.texts import WordTuple
from tasks.embeddings.making import MODELS, save_model, with_folders

__all__ = ["MODELS", "TASKS", "config_of", "examples_for", "save_model", "task_of"]
_TABLE = {"vectors": {"kind": "new", "dim": 12}, "trained": True}
_FROZEN = {"kind": "frozen", "model": "elmo"}
_EMBEDDINGS: dict[str, dict[str, Any]] = {
    "static": {"words": _TABLE},
    "frozen": {"words": _TABLE, "model": _FROZEN, "insert_at": "both"},
    "taglm": {
        "words": _TABLE,
        "model": _FROZEN,
        "insert_at": "after_first_layer",
        "mix": {"layer": -1},
    },
    "finetuned": {"model": {"kind": "finetuned", "model": "elmo", "lr_scale": 1.0}},
}
_GPT = {"model": {"kind": "finetuned", "model": "gpt", "lr_scale": 1.0, "layer_lr_decay": 1.0}}
_BERT = {"model": {"kind": "finetuned", "model": "bert", "lr_scale": 1.0, "layer_lr_decay": 1.0}}
_HF = {"model": {"kind": "finetuned", "model": "hf", "lr_scale": 1.0, "layer_lr_decay": 1.0}}
_CONTEXT = {"dim": 16, "dropout": 0.1}
_WINDOWS = {"window": 4, "overlap": 2}
_DEEP = {"num_layers": 2, **_CONTEXT}
_SPANS = {"max_width": 3, "per_word": 1.0, "dim": 48}
_DECODER = {"dim": 32, "dropout": 0.1, "max_length": 14, "beam": 2}
_SLOWER = {"choice": 0.003, "question_answering": 0.0015}
TASKS: dict[str, dict[str, Any]] = {
    "names, static": {"embeddings": _EMBEDDINGS["static"], "network": {"kind": "tagging"}},
    "names, frozen": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "tagging", "scheme": "bioes"},
    },
    "names, taglm": {
        "embeddings": _EMBEDDINGS["taglm"],
        "network": {"kind": "tagging", "context": _DEEP},
    },
    "names, taglm on one layer": {
        "embeddings": _EMBEDDINGS["taglm"],
        "network": {"kind": "tagging"},
    },
    "names, hf": {"embeddings": _HF, "network": {"kind": "tagging"}},
    "names, finetuned": {"embeddings": _EMBEDDINGS["finetuned"], "network": {"kind": "tagging"}},
    "words": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "tagging", "scheme": "none"},
    },
    "roles": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "tagging", "has_target": True, "ignore_labels": ["V"]},
    },
    "texts, frozen": {"embeddings": _EMBEDDINGS["frozen"], "network": {"kind": "classification"}},
    "texts, deep": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "classification", "context": _DEEP},
    },
    "senses": {
        "embeddings": _EMBEDDINGS["finetuned"],
        "network": {"kind": "classification", "has_target": True},
    },
    "pairs, static": {"embeddings": _EMBEDDINGS["static"], "network": {"kind": "pairs"}},
    "pairs, frozen": {"embeddings": _EMBEDDINGS["frozen"], "network": {"kind": "pairs"}},
    "documents, static": {
        "embeddings": _EMBEDDINGS["static"],
        "network": {"kind": "coreference", "spans": _SPANS},
    },
    "documents, frozen": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "coreference", "spans": _SPANS},
    },
    "written, static": {
        "embeddings": _EMBEDDINGS["static"],
        "network": {"kind": "seq2seq", "decoder": _DECODER},
    },
    "written, frozen": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "seq2seq", "decoder": _DECODER, "vocabulary": 5},
    },
    "written, pretrained": {
        "embeddings": _BERT,
        "network": {"kind": "seq2seq", "decoder": {**_DECODER, "model": "gpt"}},
    },
    "answers, static": {
        "embeddings": _EMBEDDINGS["static"],
        "network": {"kind": "question_answering", **_WINDOWS},
    },
    "answers, frozen": {
        "embeddings": _EMBEDDINGS["frozen"],
        "network": {"kind": "question_answering"},
    },
    "answers, finetuned": {
        "embeddings": _EMBEDDINGS["finetuned"],
        "network": {"kind": "question_answering", **_WINDOWS},
    },
    "choices, static": {"embeddings": _EMBEDDINGS["static"], "network": {"kind": "choice"}},
    "choices, frozen": {"embeddings": _EMBEDDINGS["frozen"], "network": {"kind": "choice"}},
    "choices, gpt": {"embeddings": _GPT, "network": {"kind": "sequence_choice"}},
    "sequences, gpt": {"embeddings": _GPT, "network": {"kind": "sequence_pair"}},
    "sequence pairs, bert": {
        "embeddings": _BERT,
        "network": {"kind": "sequence_pair", "pooling": "first", "symmetric": True},
    },
    "sequence pairs, hf": {
        "embeddings": _HF,
        "network": {"kind": "sequence_pair", "pooling": "first"},
    },
}
"""Settings of every kind of task; `model` is the name of one of MODELS."""


def config_of(name: str, models: dict[str, Path], cache: Path, **training: Any) -> TaskConfig:
    """The settings of one of TASKS."""
    values = with_folders(TASKS[name], models)
    if values["embeddings"].get("model", {}).get("kind") == "frozen":
        values["embeddings"]["model"] = {
            "cache": {"folder": cache},
            **values["embeddings"]["model"],
        }
    if "mix" not in values["embeddings"]:
        values["embeddings"]["mix"] = {"dropout": 0.1}
    if not values["network"]["kind"].startswith("sequence_"):
        values["network"] = {"context": _CONTEXT, **values["network"]}
    # The files are read nowhere: examples are made below.
    data = {"train": "train", "reader": {"kind": "columns"}}
    run = {"device": "cpu", "batch": 4, "epochs": 2, "learning_rate": 0.01, **training}
    # At 0.01 the guard against spikes stops these.
    run["learning_rate"] = _SLOWER.get(values["network"]["kind"], run["learning_rate"])
    return build(TaskConfig, {**values, "data": data, "training": run})


def examples_for(name: str, number: int = 20, seed: int = 5) -> list[Example]:
    """Examples whose labels follow a rule that each kind of network can find."""
    random = np.random.default_rng(seed)
    make: dict[str, Callable[[WordTuple], Example]] = {
        "names": _names,
        "words": lambda words: Tagged(words, tuple(word[:2].upper() for word in words)),
        "roles": _roles,
        "texts": lambda words: Classified(words, words[0][:2]),
        "answers": _question,
        "choices": _choices,
        "senses": lambda words: Classified(words, words[-1][:2], len(words) - 1),
        "written": lambda words: Translated(words, tuple(word for word in words for _ in "ab")),
        "sequences": lambda words: Classified(words, words[-1][:2]),
    }
    kind = name.partition(",")[0]
    if kind == "documents":
        return [_document(random) for _ in range(number)]
    if "pairs" in kind:
        return [_pair(_words(random), _words(random)) for _ in range(number)]
    return [make[kind](_words(random)) for _ in range(number)]


def _words(random: np.random.Generator) -> WordTuple:
    return tuple(WORDS[n] for n in random.integers(len(WORDS), size=random.integers(1, 7)))


def _names(words: WordTuple) -> Tagged:
    """Every run of words with `ba` or `no` is a span of that kind."""
    labels: list[str] = []
    for place, word in enumerate(words):
        kind = word[:2]
        goes_on = place > 0 and labels[-1].endswith(kind)
        labels.append("O" if kind not in ("ba", "no") else f"{'I' if goes_on else 'B'}-{kind}")
    return Tagged(words, tuple(labels))


def _roles(words: WordTuple) -> Tagged:
    """The word before the target does it."""
    target_index = len(words) // 2
    labels = ["O"] * len(words)
    labels[target_index] = "B-V"
    if target_index:
        labels[target_index - 1] = "B-ARG0"
    return Tagged(words, tuple(labels), target_index)


def _question(words: WordTuple) -> Question:
    """Asks for a word of the passage, which has it once."""
    words = tuple(dict.fromkeys(words))
    passage = " ".join(words)
    starts = tuple(sum(len(word) + 1 for word in words[:n]) for n in range(len(words)))
    stops = tuple(start + len(word) for start, word in zip(starts, words, strict=True))
    asked = sum(map(len, words)) % len(words)
    answer = Answer(words[asked], starts[asked])
    question = words[asked]
    return Question(question, passage, (answer,), "7", (question,), words, starts, stops)


def _choices(words: WordTuple) -> Choices:
    """Right is the one that has the first word of the text; there are two to four."""
    others = [word for word in WORDS if word[:2] != words[0][:2]]
    wrong = tuple((word, *words[1:]) for word in others[: 1 + len(words) % 3])
    place = len(words) % (len(wrong) + 1)
    return Choices(words, (*wrong[:place], words[::-1], *wrong[place:]), (place,))


def _pair(first: WordTuple, second: WordTuple) -> Paired:
    return Paired(first, second, "long" if len(first) + len(second) > 7 else "short")


def _document(random: np.random.Generator) -> Document:
    """Words that begin alike speak of the same, if it is `ba` or `no`."""
    sentences = tuple(_words(random) for _ in range(random.integers(1, 4)))
    clusters: dict[str, list[tuple[int, int]]] = {}
    for place, word in enumerate(word for words in sentences for word in words):
        if word[:2] in ("ba", "no"):
            clusters.setdefault(word[:2], []).append((place, place + 1))
    return Document(sentences, tuple(map(tuple, clusters.values())), genre=sentences[0][0][:1])


def task_of(config: TaskConfig, examples: list[Example]) -> tuple[Task, DataSet]:
    """An untrained task, the same at every call, and its training data."""
    torch.manual_seed(3)
    task = Task.new(config, examples, WORDS)
    data = DataSet(examples, task.family, task.module.embeddings, with_gold=True)
    return task, data
