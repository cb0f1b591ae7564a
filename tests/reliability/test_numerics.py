"""Half the bits keep vectors and neighbours (N6); what is not finite is never stored (N7)."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from embedding.bulk_cases import Case, make_case
from executors.jobs import hashes
from one_thread import one_thread
from tasks.making import TASKS, config_of, examples_for, save_model
from torch import nn

from polyseme.embedding.embedder import Embedder
from polyseme.errors import ModelError, PolysemeError, TrainingError, VectorsError
from polyseme.model import Model
from polyseme.progress import NullProgress
from polyseme.tasks.embeddings.frozen import LayerCache
from polyseme.tasks.task import Task
from polyseme.tasks.training import Splits, TaskTraining, train_task

__all__ = ["one_thread"]
ROOT = Path(__file__).parents[2]
Array = npt.NDArray[Any]

# --- bfloat16 ----------------------------------------------------------------------------

LEAST_COSINE, LEAST_OVERLAP, NEIGHBOURS = 0.9999, 0.98, 10


def english_sentences(number: int) -> list[list[str]]:
    """Sentences of our own pages, each once: running English that every clone has."""
    found: dict[tuple[str, ...], None] = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        prose = re.sub(r"```.*?```", " ", page.read_text("utf-8"), flags=re.DOTALL)
        for line in prose.splitlines():
            if not line.startswith(("|", "#", "    ", "-")):
                for sentence in re.split(r"(?<=[.?!]) ", line):
                    words = re.findall(r"[A-Za-z]+|[.,;:?!]", sentence)
                    if 6 <= len(words) <= 40:
                        found[tuple(words)] = None
    assert len(found) >= number
    return [list(words) for words in found][:number]


def top_layer(embedder: Embedder, sentences: list[list[str]]) -> Array:
    """The vectors of all words, each of length one. (words, D)"""
    vectors = np.concatenate([found[0] for found in embedder.stream(sentences, layers="top")])
    unit: Array = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def neighbours(vectors: Array, asked: Array) -> list[set[int]]:
    """For each of the words asked for, the most similar other words. (Q,) -> Q sets"""
    likeness = vectors[asked] @ vectors.T
    likeness[np.arange(len(asked)), asked] = -2
    best = np.argpartition(-likeness, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    return [set(row) for row in best.tolist()]


def agreement(found: Array, expected: Array, sentences: list[list[str]]) -> tuple[float, float]:
    """The lowest cosine of any word, and the mean share of equal neighbours of the middle words."""
    lengths = np.array([len(words) for words in sentences])
    asked = np.cumsum(lengths) - lengths + lengths // 2
    pairs = zip(neighbours(found, asked), neighbours(expected, asked), strict=True)
    overlap = np.mean([len(one & other) / NEIGHBOURS for one, other in pairs])
    return float((found * expected).sum(axis=1).min()), float(overlap)


@pytest.fixture(scope="module")
def mini() -> Model:
    return Model.load(ROOT / "models" / "en-mini")


@pytest.mark.parametrize("number", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_half_the_bits_keep_vectors_and_their_neighbours(mini: Model, number: int) -> None:
    sentences = english_sentences(number)
    whole = top_layer(Embedder(mini, device="cpu"), sentences)
    half = top_layer(Embedder(mini, device="cpu", precision="bfloat16"), sentences)
    cosine, overlap = agreement(half, whole, sentences)
    print(f"{number} sentences: lowest cosine {cosine:.6f}, overlap {overlap:.4f}")
    assert not np.array_equal(half, whole)
    assert cosine >= LEAST_COSINE
    assert overlap >= LEAST_OVERLAP


def test_fewer_bits_than_that_would_be_noticed(mini: Model) -> None:
    sentences = english_sentences(100)
    whole = top_layer(Embedder(mini, device="cpu"), sentences)
    fraction, exponent = np.frexp(whole)  # two bits of a fraction instead of seven
    rough = np.ldexp(np.round(fraction * 4) / 4, exponent)
    rough /= np.linalg.norm(rough, axis=1, keepdims=True)
    cosine, overlap = agreement(rough, whole, sentences)
    assert cosine < LEAST_COSINE
    assert overlap < LEAST_OVERLAP


# --- vectors that are not finite ---------------------------------------------------------


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(Path(tmp_path_factory.mktemp("numerics")))


def embed_with(case: Case, model: Model, folder: Path, **vectors: Any) -> dict[str, str]:
    """Embed the corpus with a model; what is then in the folder of vectors, under final names."""
    model.save(folder / "model", card="A model for tests.")
    replace(case, model=folder / "model").embed(folder / "vectors", **vectors)
    return hashes(folder / "vectors")


def scaled(model: Model, factor: float) -> Model:
    """All weights so many times as large, and still finite."""
    with torch.no_grad():
        for weight in model.network.encoder.parameters():
            weight.mul_(factor)
    return model


POISONS: dict[str, tuple[float, dict[str, Any]]] = {
    "infinite": (1e38, {"layers": "top", "dtype": "float32"}),
    "too large for float16": (1e6, {"layers": "0", "dtype": "float16"}),
    "too large for float16, with PCA": (1e6, {"layers": "0", "dtype": "float16", "pca": 4}),
}


@pytest.mark.parametrize("poison", POISONS)
def test_embed_stores_no_vector_that_is_not_finite(case: Case, tmp_path: Path, poison: str) -> None:
    factor, vectors = POISONS[poison]
    assert embed_with(case, Model.load(case.model), tmp_path / "sound", **vectors)
    with pytest.raises(PolysemeError, match=r"not finite|ends at 65,504"):
        embed_with(case, scaled(Model.load(case.model), factor), tmp_path, **vectors)
    stored = [path for path in (tmp_path / "vectors").rglob("*") if path.is_file()]
    assert not {path.suffix for path in stored} & {".parquet", ".hdf5"}
    assert "manifest.json" not in {path.name for path in stored}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_cache_stores_no_vector_that_is_not_finite(
    tmp_path: Path, dtype: Any, value: float
) -> None:
    cache = LayerCache(tmp_path / "cache.bin", np.array([3]), (2, 4), dtype)
    layers = np.ones((2, 3, 4), np.float32)
    layers[1, 2, 3] = value
    with pytest.raises(VectorsError, match="not finite"):
        cache.make([layers])
    assert not list(tmp_path.rglob("*"))
    cache.make([np.ones((2, 3, 4), np.float32)])
    assert cache.path.is_file()


# --- weights that are not finite ---------------------------------------------------------


def poison(module: nn.Module, value: float) -> None:
    with torch.no_grad():
        next(module.parameters()).view(-1)[0] = value


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_with_weights_that_are_not_finite_is_not_stored(
    case: Case, tmp_path: Path, value: float, dtype: torch.dtype
) -> None:
    model = Model.load(case.model)
    poison(model.network, value)
    with pytest.raises(ModelError, match=r"is not written: .* not finite"):
        model.save(tmp_path / "m", card="", dtype=dtype)
    assert not list(tmp_path.rglob("*.safetensors"))
    assert not (tmp_path / "m" / "manifest.json").exists()


def test_weights_too_large_for_half_the_bits_are_not_stored_so(case: Case, tmp_path: Path) -> None:
    model = Model.load(case.model)
    poison(model.network, 1e5)
    with pytest.raises(ModelError, match=r"not finite numbers as torch\.float16"):
        model.save(tmp_path / "m", card="", dtype=torch.float16)
    model.save(tmp_path / "m", card="")
    assert Model.load(tmp_path / "m")


# --- tasks -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = Path(tmp_path_factory.mktemp("models"))
    return {name: save_model(name, folder / name) for name in ("elmo", "gpt", "bert")}


Spoil = Callable[[TaskTraining], None]


def poisoned_before(train_module: TaskTraining) -> None:
    """A weight is spoilt before the first step: every loss is NaN."""
    poison(train_module.module, float("nan"))


def poisoned_after(train_module: TaskTraining) -> None:
    """Weights are spoilt when all is learnt, where no loss is looked at any more."""
    plain, learnt = train_module.evaluate, []

    def evaluate() -> dict[str, float]:
        told = plain()
        learnt.append(told)
        if len(learnt) == 2 * EPOCHS:
            poison(train_module.module, float("inf"))
        return told

    train_module.evaluate = evaluate  # type: ignore[method-assign]


EPOCHS = 1


@pytest.mark.parametrize("spoil", [poisoned_before, poisoned_after])
@pytest.mark.parametrize(
    "name",
    [
        "names, frozen",
        *(pytest.param(name, marks=pytest.mark.slow) for name in TASKS if name != "names, frozen"),
    ],
)
def test_no_task_is_stored_that_is_not_finite(
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    spoil: Spoil,
) -> None:
    config = config_of(name, models, tmp_path / "cache", epochs=EPOCHS)
    splits = Splits(examples_for(name), examples_for(name, 8, seed=9), {})
    folder = tmp_path / "task"

    class Spoilt(TaskTraining):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            spoil(self)

    with monkeypatch.context() as patch:
        patch.setattr("polyseme.tasks.training.TaskTraining", Spoilt)
        with pytest.raises((TrainingError, ModelError), match="finite"):
            train_task(config, splits, folder, seed=1, progress=NullProgress())
    assert not (folder / "manifest.json").exists()
    assert not (folder / "model.safetensors").exists()
    with pytest.raises(ModelError):
        Task.load(folder)
    train_task(config, splits, tmp_path / "sound", seed=1, progress=NullProgress())
    assert Task.load(tmp_path / "sound")
