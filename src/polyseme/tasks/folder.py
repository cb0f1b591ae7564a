"""The folder of a trained task: what is in it, and which of several seeds is the best."""

from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from polyseme.errors import ModelError
from polyseme.storage.folders import (
    MANIFEST,
    SEED_PREFIX,
    ArtifactType,
    check_holds,
    read_manifest,
)

WEIGHTS, CONFIG, WORDS = "model.safetensors", "config.toml", "words.json"
INCLUDED = "model"
"""Folder of the model, inside that of the task, if it was included."""


class _EmbeddingsInfo(TypedDict):
    model: Any


class _Metadata(TypedDict, total=False):
    dev: float
    is_on_pairs: bool


class _Manifest(TypedDict):
    """What is read of it."""

    embeddings: _EmbeddingsInfo
    metadata: _Metadata


ARTIFACT = ArtifactType(
    name="task",
    version=2,
    files=frozenset({WEIGHTS, CONFIG, WORDS}),
    metadata_keys=("embeddings", "metadata"),
    made_by="polyseme train TASK.toml",
    shape=_Manifest,
)


def is_task(folder: Path) -> bool:
    """Whether this is the folder of a trained task, not of a model."""
    return (folder / WORDS).is_file() or any(folder.glob(f"{SEED_PREFIX}*/{WORDS}"))


def trained_in(folder: Path) -> list[Path]:
    """The trained tasks in a folder, one for each seed; or the folder itself."""
    check_holds(folder, ARTIFACT.name, ARTIFACT.made_by, ModelError)
    if (folder / MANIFEST).is_file():
        return [folder]
    found = [path for path in folder.glob(f"{SEED_PREFIX}*") if (path / MANIFEST).is_file()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def best_in(folder: Path) -> Path:
    """The trained task that is best on the development data; of equals, the first."""
    found = {path: read_manifest(path, ARTIFACT)["metadata"] for path in trained_in(folder)}
    dev = {path: metadata.get("dev", 0.0) for path, metadata in found.items()}
    return max(dev, key=lambda path: dev[path])
