"""Every command that writes, small enough to be run hundreds of times in one process."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from embedding.bulk_cases import Case
from laws.cases import make
from tasks.cases import TaskCase, make_task

from polyseme.commands import (
    compare,
    embed,
    evaluate,
    inspect,
    predict,
    prepare,
    pretrain,
    train,
)
from polyseme.commands.convert import ExportConfig, export
from polyseme.commands.vectors import VectorsInfoConfig, info
from polyseme.config import build
from polyseme.pretraining import PretrainConfig
from polyseme.text.corpus import Corpus

_SMALL_MODEL = {
    "encoder": {"contextualizer": {"proj_size": 16}},
    "vocabulary": {"min_count": 1},
}


@dataclass(frozen=True)
class Inputs:
    """What the commands read, all of it finished."""

    folder: Path
    case: Case
    task: TaskCase
    bytes_model: Path

    @property
    def texts(self) -> list[Path]:
        return sorted((self.folder / "texts").iterdir())


def make_inputs(folder: Path) -> Inputs:
    """Texts with a bad line, a corpus, models, a task."""
    torch.set_num_threads(1)
    (folder / "texts").mkdir(parents=True)
    for number in range(3):
        text = "".join(f"word{n % 40} is here , number {n} .\n" for n in range(60))
        (folder / "texts" / f"{number}.txt").write_bytes(text.encode() + b"\xff\xfe bad\n")
    task = make_task(folder / "task")
    made = folder / "task" / "made"
    case = Case(task.model, Corpus.open(made / "corpus"), made / "text.txt")
    bytes_model = folder / "bytes-model"
    make("plain-lstm", "separate", "bidirectional", "bytes", "full").model().save(
        bytes_model, card="A model for tests."
    )
    return Inputs(folder, case, task, bytes_model)


def run_prepare(inputs: Inputs, out: Path, turn: int) -> None:
    """Other texts and settings in each turn, so that shards of an earlier plan are there."""
    corpus = {"language": "en", "layout": "lines", "segmenter": "whitespace", "shard_bytes": 4096}
    values = {
        "inputs": [str(path) for path in inputs.texts[: 1 + turn % 3]],
        "out": out,
        "corpus": corpus | {"max_words": 100 + turn % 2},
        "executor": {"workers": 1},
        "replace": True,
    }
    prepare.run(build(prepare.PrepareConfig, values))


def run_embed(inputs: Inputs, out: Path, turn: int) -> None:
    texts = [str(inputs.case.corpus.folder)] if turn % 3 else [str(inputs.texts[0])]
    chosen: dict[str, Any] = {"layers": "top", "words": ["word1"], "pca": (None, 8)[turn % 2]}
    values = {
        "model": inputs.case.model,
        "inputs": texts,
        "out": out,
        "vectors": chosen,
        "executor": {"workers": 1},
        "replace": True,
    }
    embed.run(build(embed.EmbedConfig, values))


def run_pretrain(inputs: Inputs, out: Path, turn: int) -> None:
    training = {
        "steps": 3,
        "save_steps": 1,
        "keep_checkpoints": 2 - turn % 2,
        "precision": "float32",
    }
    values = {
        "corpus": inputs.case.corpus.folder,
        "out": out,
        "preset": "elmo-teaching",
        "held_out_words": 50,
        "training": training,
        "model": _SMALL_MODEL,
        "batches": {"words": 64},
    }
    pretrain.run(build(PretrainConfig, values))


def run_train(inputs: Inputs, out: Path, turn: int) -> None:
    values = {
        "task": inputs.task.task,
        "out": out,
        "training": {"epochs": 1},
        "embeddings": {"model": {"cache": {"folder": str(inputs.folder.parent / "cache")}}},
    }
    train.run(build(train.TrainConfig, values))


def run_compare(inputs: Inputs, out: Path, turn: int) -> None:
    values = {
        "task": inputs.task.task,
        "out": out,
        "variants": ["static", "frozen"][: 1 + turn % 2],
        "training": {"epochs": 1},
        "embeddings": {"model": {"cache": {"folder": str(inputs.folder.parent / "cache")}}},
    }
    compare.run(build(compare.CompareConfig, values))


def run_predict(inputs: Inputs, out: Path, turn: int) -> None:
    """The trained task may be the one that was tampered with; labels go beside it."""
    model = out if turn % 2 and (out / "seed-1").exists() else _trained(inputs)
    values: dict[str, Any] = {"task": model, "out": out / "labels.jsonl"}
    values |= {"input_file": inputs.texts[0]} if turn % 3 else {"inputs": ["word1 word10 word3"]}
    predict.run(build(predict.PredictConfig, values))


def run_inspect(inputs: Inputs, out: Path, turn: int) -> None:
    values = {"corpus": out, "verify": bool(turn % 2), "plot": out / "figures.png"}
    inspect.run(build(inspect.InspectConfig, values))


def run_vectors(inputs: Inputs, out: Path, turn: int) -> None:
    info(build(VectorsInfoConfig, {"folder": out, "verify": True}))


def run_evaluate(inputs: Inputs, out: Path, turn: int) -> None:
    values = {"model_or_task": inputs.case.model, "corpus": out, "order": 2, "memory": "256MB"}
    evaluate.run(build(evaluate.EvaluateConfig, values))


def run_convert(inputs: Inputs, out: Path, turn: int) -> None:
    values = {"model": inputs.bytes_model, "out": out}
    export(build(ExportConfig, values))


Command = Callable[[Inputs, Path, int], None]
COMMANDS: dict[str, Command] = {
    "prepare": run_prepare,
    "embed": run_embed,
    "pretrain": run_pretrain,
    "train": run_train,
    "compare": run_compare,
    "predict": run_predict,
    "inspect": run_inspect,
    "vectors": run_vectors,
    "evaluate": run_evaluate,
    "convert": run_convert,
}


_MODEL = ("manifest.json", "config.toml", "model.safetensors", ".lock", "run.jsonl", "curve.png")
_RUN = (".work", "checkpoints", "refused")
_STEPS = tuple(f"checkpoints/step-{step:09d}" for step in (1, 2, 3, 4))
_CORPUS = ("manifest.json", "config.toml", "vocabulary.parquet", ".lock")
_SHARDS = (
    *("shards/part-00000.parquet", "shards/part-00099.parquet", "quarantine/part-00000.jsonl"),
    *("words/part-00000.npy", "words/part-00099.npy"),
    *("quarantine/part-00099.jsonl", "receipts/part-00000.json", "receipts/part-00099.json"),
)
_SHARD_FOLDERS = (".work", "shards", "words", "quarantine", "receipts")
_TASK = (*_MODEL, "words.json", "metrics.json", "layers.png", "confusion.png")


def _below(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


WRITES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prepare": ((*_CORPUS, *_SHARDS), _SHARD_FOLDERS),
    "embed": (
        (
            *("manifest.json", "config.toml", "pca.safetensors", ".lock"),
            *("vectors/part-00000-0000.parquet", "vectors/part-00099-0000.parquet"),
            *("receipts/part-00000-0000.json", "receipts/part-00099-0000.json"),
            *_below("corpus", (*_CORPUS, *_SHARDS)),
        ),
        (*(".work", "vectors", "receipts", "corpus"), *_below("corpus", _SHARD_FOLDERS)),
    ),
    "pretrain": (
        (*_MODEL, "plan.toml", "README.md", "vocabulary.parquet", "characters.parquet"),
        (*_RUN, *_STEPS),
    ),
    "train": (("metrics.json", *_below("seed-1", _TASK)), ("seed-1", *_below("seed-1", _RUN))),
    "compare": (
        ("compare-dev.json", *_below("static/seed-1", _TASK)),
        ("static", "frozen", "static/seed-1", *_below("static/seed-1", _RUN)),
    ),
    "predict": (("labels.jsonl",), (".work",)),
    "inspect": (("figures.png", *_CORPUS, *_SHARDS), (".work", "shards")),
    "vectors": (("manifest.json", "vectors/part-00000-0000.parquet"), ("vectors", ".work")),
    "evaluate": (_CORPUS, (".work", "shards")),
    "convert": ((".work",), (".work",)),
}
"""Names of files and folders that each command makes, or reads as its own, where it writes."""


def unfinish(name: str, out: Path) -> None:
    """Take away what makes a folder finished, so that the command has work to do."""
    for each in ("manifest.json", "seed-1/manifest.json", "static/seed-1/manifest.json"):
        if name not in ("inspect", "vectors", "evaluate", "predict"):
            (out / each).unlink(missing_ok=True)
    for last in sorted((out / "checkpoints").glob("step-*"))[1:]:
        shutil.rmtree(last)


def finished_output(name: str, inputs: Inputs) -> Path | None:
    """A folder as the command leaves it, made once; of those that read, what they read."""
    out = inputs.folder.parent / "finished" / name
    if not out.exists():
        match name:
            case "inspect" | "evaluate":
                shutil.copytree(inputs.case.corpus.folder, out)
            case "vectors":
                run_embed(inputs, out, 1)
            case "predict":
                shutil.copytree(_trained(inputs), out)
            case "convert":
                return None  # it wants an empty folder
            case _:
                COMMANDS[name](inputs, out, 0)
    return out


def _trained(inputs: Inputs) -> Path:
    out = inputs.folder.parent / "finished" / "train"
    if not (out / "metrics.json").exists():
        run_train(inputs, out, 0)
    return out
