"""The labelled data that gains are measured on, of `tasks.toml`, and the settings made of it.

Where the labels of a test set are not public, the development set is measured on at the end, and
every tenth training example decides when to stop. Where there is one file only, every fifth of its
articles or lines is measured on, and the rest learned from. Settings are the same for static and
frozen.
"""

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

NUM_FOLDS = 5
"""Parts of a set that has one file only."""


@dataclass(frozen=True)
class LabelledSet:
    """One task."""

    title: str
    archive: str
    train: str
    test: str
    reader: dict[str, Any]
    network: dict[str, Any]
    dev: str | None = None
    language: Literal["english", "chinese"] = "english"
    training: dict[str, Any] = field(default_factory=dict)
    mix: dict[str, Any] = field(default_factory=dict)
    """How the model's layers become one vector."""
    labels_characters: bool = False
    """Whether labels stand at characters."""
    is_split: bool = False
    """Whether `train` is the one file there is: some of it is taken for `test`."""
    documents: str | None = None
    """Where every document is a file of its own: which files, to be joined into those above."""
    reported: dict[str, Any] = field(default_factory=dict)
    """What Peters et al. 2018 report: `baseline`, `elmo`, and their `data` where ours is of its
    kind only."""


_FILE = Path(__file__).with_suffix(".toml")
# Questions in Chinese are answered by characters: by words, which takes half the time, the words
# around the gold answers of CMRC 2018 and DRCD have an F1 of 99.4 and 97.8. A window holds the
# longest passage. `layer_norm`: the model's numbers are a third as large as those of static vectors
# beside them; made as large, the network learns sooner. Chosen on development data of XQuAD.
TASKS: dict[str, LabelledSet] = {
    name: LabelledSet(**told)
    for name, told in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}


def settings_of(
    task: LabelledSet, data: Path, models: dict[str, Path], *, cache: Path, fold: int = 0
) -> dict[str, Any]:
    """The settings of a task, static vectors and model both named, as `TaskConfig` takes them.

    `fold`: which fifth is measured on, where a task has one file only.
    """
    model, static = models[task.language], models[f"static_{task.language}"]
    # All but rare words, so that words of the test data that training has not seen have vectors.
    vectors: dict[str, Any] = {"extra_words": 100_000}
    vectors |= (
        {"kind": "file", "path": static} if static.is_file() else {"kind": "model", "model": static}
    )
    words: dict[str, Any] = {"vectors": vectors, "dropout": 0.3}
    if task.network["kind"] in ("tagging", "coreference") and not task.labels_characters:
        words["characters"] = {}
    embeddings: dict[str, Any] = {
        "words": words,
        "model": {"kind": "frozen", "model": model, "cache": {"folder": cache}},
        "mix": {"dropout": 0.4, **task.mix},
    }
    if task.labels_characters:
        embeddings["character_labels"] = {"tokenizer_from": model}
    if task.is_split:
        folder = cache.parent / "data" / f"fold-{fold}"
        files = split_file(_find(data, task.train), folder, task.test, fold=fold)
    else:
        files = {name: _find(data, file) for name, file in _files(task).items()}
    return {
        "data": {**files, "reader": task.reader, "tokenizer_from": model},
        "embeddings": embeddings,
        "network": task.network,
        "training": {"learning_rate": 1e-3, **task.training},
    }


def split_file(source: Path, folder: Path, test: str, *, fold: int) -> dict[str, Path]:
    """The files of a set that has one only: every fifth article, or line, for testing, beginning
    with the one that `fold` numbers."""
    files = {"train": folder / source.name, "test": folder / test}
    folder.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    articles = json.loads(text)["data"] if source.suffix == ".json" else None
    units: list[Any] = text.splitlines(keepends=True) if articles is None else articles
    for name, file in files.items():
        is_test = name == "test"
        own = [each for at, each in enumerate(units) if (at % NUM_FOLDS == fold) == is_test]
        content = "".join(own) if articles is None else json.dumps({"data": own})
        file.write_text(content, encoding="utf-8")
    return files


def join_documents(task: LabelledSet, data: Path, out: Path) -> Path:
    """The folder of files for training, development and test, 8 : 1 : 1 by the documents' names in
    their order; the same whenever it is called."""
    assert task.documents is not None
    assert task.dev is not None
    parts: dict[str, list[str]] = {task.test: [], task.dev: [], task.train: []}
    for number, path in enumerate(sorted(data.rglob(task.documents))):
        part = (task.test, task.dev)[number % 10] if number % 10 < 2 else task.train
        parts[part].append(path.read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    for name, texts in parts.items():
        (out / name).write_text("".join(texts), encoding="utf-8")
    return out


def _files(task: LabelledSet) -> dict[str, str]:
    named = {"train": task.train, "dev": task.dev, "test": task.test}
    return {name: file for name, file in named.items() if file is not None}


def _find(data: Path, file: str) -> Path:
    [found] = [path for path in data.rglob(Path(file).name) if path.as_posix().endswith(file)]
    return found
