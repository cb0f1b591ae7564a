"""Manifests, receipts and checkpoints that are JSON, but not ours: refused in words."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from data.making import make_corpus, numbered_documents
from tasks.embeddings.making import save_model
from text.making import make_config

from polyseme.commands import inspect, vectors
from polyseme.embedding.folder import ARTIFACT as VECTORS
from polyseme.embedding.folder import VectorFolder
from polyseme.errors import PolysemeError
from polyseme.executors.commit import _seal, read_receipt
from polyseme.model import ARTIFACT, Model
from polyseme.storage.files import canonical_json, describe_file
from polyseme.storage.folders import _DIGEST, _digest
from polyseme.tasks.task import ARTIFACT as TASK
from polyseme.tasks.task import best_in
from polyseme.text.corpus import ARTIFACT as CORPUS
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import Preparation
from polyseme.training.checkpoint import _MANIFEST, Checkpoints, DamagedCheckpointError

WRONG: list[Any] = [None, 3, -1, "text", [], {}, [[1]], {"a": 1}, True, 1.5]


def broken(good: Any) -> Iterator[Any]:
    """Everything that differs from a good value in one place: another type there, or nothing."""
    yield from (wrong for wrong in WRONG if type(wrong) is not type(good))
    if isinstance(good, dict):
        for name, value in good.items():
            yield {key: kept for key, kept in good.items() if key != name}
            for other in broken(value):
                yield {**good, name: other}


def refused(open_it: Callable[[], object]) -> bool:
    """True if refused in words, False if taken; anything else is raised."""
    try:
        open_it()
    except PolysemeError:
        return True
    return False


def refusals(path: Path, good: Any, keys: tuple[str, ...], open_it: Callable[[], object]) -> int:
    """How many manifests that differ from a good one in one place are refused, though their seal
    fits. The good one is not."""
    manifests = [good, *broken(good)]
    told = []
    for manifest in manifests:
        path.write_text(canonical_json(resealed(manifest, keys)), encoding="utf-8")
        told.append(refused(open_it))
    assert not told[0]
    return sum(told)


def test_a_corpus_with_a_wrong_manifest_is_refused_or_shown(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "c", [numbered_documents(4)])
    path = corpus.folder / "manifest.json"
    good = json.loads(path.read_text(encoding="utf-8"))

    def look() -> object:
        config = inspect.InspectConfig(corpus=corpus.folder, verify=True)
        return inspect.show(inspect.run(config))

    number = len(list(broken(good)))
    assert number > 200
    assert refusals(path, good, CORPUS.metadata_keys, look) > number // 2
    for text in ("", "[" * 100_000, '{"format": 1}', "\x1b"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(PolysemeError):
            Corpus.open(corpus.folder)


def test_vectors_with_a_wrong_manifest_are_refused_or_shown(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    good = {
        "artifact": "vectors",
        "format": VECTORS.version,
        "model": "0" * 64,
        "corpus": "0" * 64,
        "settings": {},
        "environments": [{"torch": "2"}],
        "columns": ["top"],
        "dim": 8,
        "explained_variance_ratio": [0.5],
        "counts": {
            "sentences": 1,
            "sentences_embedded": 1,
            "words_read": 2,
            "unread_words": 0,
            "vectors": 2,
        },
        "files": {
            "vectors/a.parquet": {"bytes": 3, "sha256": "0" * 64},
            "config.toml": describe_file(tmp_path / "config.toml"),
        },
    }
    path = tmp_path / "manifest.json"

    def look() -> object:
        config = vectors.VectorsInfoConfig(folder=tmp_path)
        return vectors.show(vectors.info(config)), VectorFolder.open(tmp_path).damaged()

    assert refusals(path, good, VECTORS.metadata_keys, look) > 100


def test_a_model_with_a_wrong_manifest_is_refused_though_its_seal_fits(tmp_path: Path) -> None:
    folder = save_model("elmo", tmp_path / "m")
    path = folder / "manifest.json"
    good = json.loads(path.read_text(encoding="utf-8"))
    assert refusals(path, good, ARTIFACT.metadata_keys, lambda: Model.load(folder)) > 50


def test_a_model_that_does_not_tell_how_its_text_was_prepared_is_refused() -> None:
    good = Preparation.of(make_config()).to_manifest()
    assert Preparation.from_manifest(good) == Preparation.of(make_config())
    count = 0
    for wrong in (*WRONG, *broken(good)):
        try:
            Preparation.from_manifest(wrong)
        except ValueError:
            count += 1
    assert count > 100


def test_a_task_with_a_wrong_manifest_is_refused_though_its_seal_fits(tmp_path: Path) -> None:
    good = {
        "format": 2,
        "embeddings": {"model": None},
        "metadata": {"dev": 0.5, "is_on_pairs": False},
        "files": {},
    }
    for name in TASK.files:
        (tmp_path / name).write_text("", encoding="utf-8")
        good["files"][name] = describe_file(tmp_path / name)  # type: ignore[index]
    path = tmp_path / "manifest.json"
    assert refusals(path, good, TASK.metadata_keys, lambda: best_in(tmp_path)) > 80
    path.write_text(canonical_json(resealed(good, TASK.metadata_keys)), encoding="utf-8")
    assert best_in(tmp_path) == tmp_path


def resealed(manifest: Any, told: tuple[str, ...]) -> Any:
    """As someone would who knows how: the hash of what is told fits again."""
    if not isinstance(manifest, dict) or not set(told) <= manifest.keys():
        return manifest
    return {**manifest, _DIGEST: _digest({name: manifest[name] for name in told})}


def test_a_receipt_that_is_not_one_counts_as_missing(tmp_path: Path) -> None:
    good = {"name": "a", "key": "k", "input": "i", "files": {}, "counts": {"words": 1}, "stamp": ""}
    path = tmp_path / "receipts" / "a.json"
    path.parent.mkdir()

    def write(values: Any) -> None:
        text = _seal(values) if isinstance(values, dict) else canonical_json(values)
        path.write_text(text, encoding="utf-8")

    write(good)
    assert read_receipt(tmp_path, "a") is not None
    for values in broken(good):
        write(values)
        read_receipt(tmp_path, "a")  # None, or one whose parts have the right types
    wrong: list[Any] = [[], "x", {"b": 3}, {"b": {"bytes": "3", "sha256": "0"}}, {"b": {}}]
    for files in wrong:
        write({**good, "files": files})
        assert read_receipt(tmp_path, "a") is None, files
    path.write_text("[" * 100_000, encoding="utf-8")
    assert read_receipt(tmp_path, "a") is None


def test_a_checkpoint_whose_state_is_not_one_is_damaged(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    checkpoints = Checkpoints(tmp_path, keep=1)
    folder = checkpoints.path(3)
    folder.mkdir(parents=True)
    for name in ("weights.safetensors", "optimizer.safetensors"):
        save_file({}, folder / name)
    for state in [*WRONG, {"step": "3"}, {"step": None}]:
        (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
        names = ("weights.safetensors", "optimizer.safetensors", "state.json")
        files = {name: describe_file(folder / name) for name in names}
        (folder / _MANIFEST).write_text(canonical_json({"format": 1, "files": files}), "utf-8")
        with pytest.raises(DamagedCheckpointError):
            checkpoints.load(3)
