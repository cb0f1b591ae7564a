"""An encoder of Hugging Face wherever a model of ours can stand: embed, train, compare, predict."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from command_line import polyseme as command_line
from embedding.bulk_cases import Case, make_case
from embedding.hf_making import make_folder
from listening import Heard
from tasks.cases import TASK, make_task

import polyseme
from polyseme.commands import embed, train
from polyseme.config import build
from polyseme.embedding.folder import VectorFolder
from polyseme.errors import ConfigError, ModelError
from polyseme.tasks.task import Task


class Made(NamedTuple):
    """An encoder with its name, a corpus, and a task that uses the encoder."""

    folder: Path
    name: str
    case: Case
    task: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("hf")
    folder = make_folder("bert", root / "models" / "bert")
    case = make_task(root)
    values = {"folder": root.as_posix(), "model": f"hf:{folder.as_posix()}"}
    text = TASK.format(**values).replace("epochs = 12", "epochs = 2")
    text = text.replace("[data]", '[data]\ntokenizer_from = "en"')
    case.task.write_text(text, encoding="utf-8")
    return Made(folder, f"hf:{folder}", make_case(root / "made"), case.task)


def embed_corpus(made: Made, out: Path, **changes: Any) -> embed.EmbedResult:
    config = made.case.settings(out, **changes)
    return embed.run(config.model_copy(update={"model": Path(made.name)}))


def train_task(made: Made, out: Path, **changes: Any) -> train.TrainResult:
    values = {"task": made.task, "out": out, **changes}
    return train.run(build(train.TrainConfig, values))


def test_a_corpus_is_embedded_and_its_vectors_are_those_of_the_embedder(
    made: Made, tmp_path: Path
) -> None:
    result = embed_corpus(made, tmp_path / "v", dtype="float32")
    embedder = polyseme.load(made.name, device="cpu")
    manifest = result.vectors.manifest
    assert manifest["model"] == embedder.fingerprint
    assert manifest["columns"] == ["layer_0", "layer_1", "layer_2"]
    assert manifest["dim"] == embedder.dim == 24
    [environment] = manifest["environments"]
    assert environment["transformers"]
    rows = result.vectors.read(limit=400).to_pylist()
    first = [row for row in rows if row["sentence_id"] == rows[0]["sentence_id"]]
    [found] = embedder.embed([[row["word"] for row in first]])
    for layer in range(3):
        kept = np.array([row[f"layer_{layer}"] for row in first], np.float32)
        assert np.allclose(kept, found.vectors[layer], atol=1e-5)


def test_vectors_of_two_encoders_are_never_mixed(made: Made, tmp_path: Path) -> None:
    out = tmp_path / "v"
    mean = embed_corpus(made, out, layers="top").vectors
    again = embed_corpus(made, out, layers="top")
    assert again.files_found == len(again.vectors.files)  # nothing was done twice
    own = embed.run(made.case.settings(out, layers="top"))  # a model of ours, the same settings
    assert own.files_found == 0
    first = embed_corpus(made, tmp_path / "first", layers="top", pooling="first").vectors
    assert len({each.manifest["model"] for each in (mean, own.vectors, first)}) == 3
    with pytest.raises(ConfigError, match="pooling = 'first' is for Hugging Face encoders"):
        embed.run(made.case.settings(tmp_path / "own", pooling="first"))


def test_texts_need_to_be_told_how_words_are_found(made: Made, tmp_path: Path) -> None:
    text = tmp_path / "letters.txt"
    text.write_text("She plays the piano. It rains.\u200d\n", encoding="utf-8")
    values = {"model": made.name, "inputs": [str(text)], "executor": {"workers": 1}}
    with pytest.raises(ModelError, match="--tokenizer-from"):
        embed.run(build(embed.EmbedConfig, {**values, "out": tmp_path / "none"}))
    for number, source in enumerate(("en", made.case.model, made.case.corpus.folder)):
        told = {**values, "out": tmp_path / f"v{number}", "tokenizer_from": str(source)}
        words = embed.run(build(embed.EmbedConfig, told)).vectors.read()["word"].to_pylist()
        assert words[:5] == ["She", "plays", "the", "piano", "."]


def test_python_reads_texts_as_it_is_told(made: Made) -> None:
    embedder = polyseme.load(made.name, tokenizer_from="en")
    first, second = embedder.embed("She plays the piano. It rains.")
    assert first.words == ("She", "plays", "the", "piano", ".")
    assert first.starts == (0, 4, 10, 14, 19)
    assert second.vectors.shape == (3, 3, 24)
    with pytest.raises(ModelError, match="does not say how text is split into words"):
        polyseme.load(made.name, tokenizer_from=made.name)
    with pytest.raises(ConfigError, match="defines how text is split"):
        polyseme.load(made.case.model, tokenizer_from="en")


def test_a_task_is_trained_moved_and_used(made: Made, tmp_path: Path) -> None:
    out = tmp_path / "here" / "names"
    trained = train_task(made, out, include_model=True)
    assert 0 <= trained.metadata[0]["dev"] <= 1
    assert {path.name for path in (out / "model").iterdir()} >= {"model.safetensors"}
    moved = (tmp_path / "here").rename(tmp_path / "there") / "names" / "seed-1"
    gone = made.folder.rename(made.folder.with_name("gone"))
    try:
        task = Task.load(moved)
        [found] = task.predict(["word1 word10"])
        assert found.words == ("word1", "word10")
        for model in (gone, Path(f"hf:{gone}")):
            assert Task.load(moved, model=model).config.embeddings.model is not None
        with pytest.raises(ModelError, match="is not it"):
            Task.load(moved, model=made.case.model)
    finally:
        gone.rename(made.folder)


def test_a_task_that_cannot_read_text_says_so_when_it_is_trained(
    made: Made, tmp_path: Path
) -> None:
    task = tmp_path / "task.toml"
    text = made.task.read_text(encoding="utf-8").replace('tokenizer_from = "en"', "")
    task.write_text(text.replace("epochs = 2", "epochs = 1"), encoding="utf-8")
    heard = Heard()
    config = build(train.TrainConfig, {"task": task, "out": tmp_path / "out"})
    train.run(config, heard)
    assert any("data.tokenizer_from" in said for said in heard.said)
    with pytest.raises(ModelError, match="tokenizer_from = 'en'"):
        Task.load(tmp_path / "out" / "seed-1").predict(["word1"])


def test_where_a_model_of_ours_is_needed_the_error_says_so(made: Made) -> None:
    with pytest.raises(ModelError, match="is a Hugging Face encoder; a model of Polyseme's"):
        polyseme.score("It rains.", model=made.name)


def test_the_command_line_takes_its_name(made: Made, tmp_path: Path) -> None:
    words = (made.name, made.case.corpus.folder, "--layers", "top", "--workers", "2")
    shown = command_line("embed", "--model", *words, "--out", tmp_path / "v")
    assert "polyseme vectors info" in " ".join(shown.stdout.split())
    assert "Loading" not in shown.stderr
    assert VectorFolder.open(tmp_path / "v").manifest["dim"] == 24
    shown = command_line(
        "embed", "--model", "hf:models/nowhere", tmp_path, "--out", tmp_path / "w", code=65
    )
    assert "hf download OWNER/MODEL" in " ".join(shown.stderr.split())
