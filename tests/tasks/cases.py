"""A tiny model that reads raw text, and names to be found in files of columns."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corpora import prepared
from embedding.bulk_cases import make_case

TASK = """
[data]
train = "{folder}/train.conll"
dev = "{folder}/dev.conll"
test = "{folder}/test.conll"
reader.kind = "columns"

[embeddings.words]
vectors = {{ kind = "new", dim = 16 }}
trained = true

[embeddings.model]
kind = "frozen"
model = "{model}"
cache.folder = "{folder}/cache"

[network]
kind = "tagging"
context.dim = 16

[training]
epochs = 12
learning_rate = 0.01
batch = 8
"""


@dataclass(frozen=True)
class TaskCase:
    """A task's file and what it names."""

    task: Path
    model: Path
    folder: Path


def make_task(folder: Path) -> TaskCase:
    """Words whose number is divisible by five are names."""
    model = make_case(folder / "made").model
    for part, (first, last) in {"train": (0, 60), "dev": (60, 75), "test": (75, 90)}.items():
        lines: list[str] = []
        for number in range(first, last):
            words = [(number * 7 + place) % 50 for place in range(2 + number % 6)]
            lines += [f"word{word} {'I-NAME' if word % 5 == 0 else 'O'}" for word in words]
            lines.append("")
        (folder / f"{part}.conll").write_text("\n".join(lines), encoding="utf-8")
    task = folder / "names.toml"
    values = {"folder": folder.as_posix(), "model": model.as_posix()}
    task.write_text(TASK.format(**values), encoding="utf-8")
    return TaskCase(task, model, folder)


def prepare_documents(folder: Path, number: int, after: Mapping[int, str] | None = None) -> Path:
    """A corpus of documents of four sentences that say where they stand; `after` has others."""
    folder.mkdir(parents=True)
    texts = folder / "texts.jsonl"
    lines = []
    for document in range(number):
        own = {line: f"Text {document} line {line} goes on here." for line in range(4)}
        lines.append(json.dumps({"text": " ".join((own | dict(after or {})).values())}))
    texts.write_text("\n".join(lines), encoding="utf-8")
    return prepared(texts, folder / "corpus", held_out=0.0).folder
