"""What a server answers besides vectors: what a trained task finds, and groups of a word's uses.

Both are compared with what the library answers in Python, and nothing is told of what was asked.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import polyseme
from meanings.making import Document, make_corpus
from meanings.test_use_index import WORDS, documents, make_index
from pretraining.making import tiny_model as model_of
from starlette.testclient import TestClient
from tasks.cases import make_task
from tasks.making import config_of, examples_for, save_model, task_of

import polyseme as api
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.serving.engine import SenseFinder
from polyseme.tasks.task import Task
from serving.making import app_serving, client_of

NAMES = ["word1 word2 word10 word3", "word4 word5"]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Path]]:
    """A server with a tagger that finds names, and the tagger's folder."""
    made = make_task(tmp_path_factory.mktemp("served-task"))
    out = made.folder / "names"
    polyseme("train", made.task, "--out", out, "--set", "training.epochs=6")
    with client_of(app_serving(made.model, task=out, limits={"max_words": 60})) as client:
        yield client, out


@pytest.mark.parametrize("probabilities", [False, True])
def test_predictions_are_those_of_the_library(
    names: tuple[TestClient, Path], probabilities: bool
) -> None:
    client, folder = names
    body = {"inputs": NAMES, "probabilities": probabilities}
    answer = client.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    found = Task.load(folder).predict(NAMES, probabilities=probabilities)
    assert answer.json() == {"data": json.loads(json.dumps([each.as_json() for each in found]))}
    assert answer.json()["data"][0]["words"] == NAMES[0].split()
    assert ("probabilities" in answer.json()["data"][0]) == probabilities
    alone = client.post("/predict", json={**body, "inputs": NAMES[1]}).json()["data"]
    assert [each["labels"] for each in alone] == [answer.json()["data"][1]["labels"]]


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([["word1", "word2"]], "not what the task reads"),  # a tagger reads single texts
        ("word1 " * 61, "61 words are too many"),
        (["word1 " * 31, "word2 " * 30], "61 words are too many"),
    ],
)
def test_what_the_task_cannot_read_is_refused_without_repeating_it(
    names: tuple[TestClient, Path], inputs: Any, told: str
) -> None:
    client, _ = names
    answer = client.post("/predict", json={"inputs": inputs})
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]
    assert "word1" not in answer.text
    assert client.post("/predict", json={"inputs": NAMES}).status_code == 200


def test_a_task_may_be_served_beside_vectors_and_is_told(names: tuple[TestClient, Path]) -> None:
    client, _ = names
    told = client.get("/info").json()
    assert told["task"] == "tagging"
    assert told["routes"] == ["/v1/embeddings", "/v1/words", "/embed_all", "/predict"]
    example = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["requestBody"]
    body = example["content"]["application/json"]["example"]
    assert client.post("/predict", json=body).status_code == 200
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    _, several = schemas["PredictRequest"]["properties"]["inputs"]["anyOf"]
    assert [each["type"] for each in several["items"]["anyOf"]] == ["string"]  # no pairs
    assert client.post("/senses", json={"word": "word1"}).status_code == 404
    words = client.get("/metrics").text
    assert float(words.split("\npolyseme_words_total ")[1].split()[0]) >= 4


@pytest.mark.parametrize("name", ["pairs, static", "choices, static"])
def test_texts_that_belong_together_are_a_list_each(
    name: str, tiny_model: Path, tmp_path: Path
) -> None:
    """Two pairs, or two texts with their choices: each is answered, and neither reads the other."""
    models = {"elmo": save_model("elmo", tmp_path / "elmo")}
    config = config_of(name, models, tmp_path / "cache")
    data = config.data.model_copy(update={"tokenizer_from": tiny_model})
    config = config.model_copy(update={"data": data})
    task, _ = task_of(config, examples_for(name))
    task.save(tmp_path / "task")
    inputs = [["word1 word2", "word3", "word4 word5"], ["word6", "word7", "word8"]]
    if name.startswith("pairs"):
        inputs = [each[:2] for each in inputs]
    with client_of(app_serving(tiny_model, task=tmp_path / "task")) as client:
        answer = client.post("/predict", json={"inputs": inputs})
        assert answer.status_code == 200, answer.text
        alone = [client.post("/predict", json={"inputs": [each]}).json() for each in inputs]
        odd = client.post("/predict", json={"inputs": ["word1 word2"]})
    assert answer.json()["data"] == [each["data"][0] for each in alone]
    assert len(answer.json()["data"]) == 2
    assert odd.status_code == 400
    assert "word1" not in odd.text


Senses = tuple[TestClient, Path, Path]


@pytest.fixture(scope="module")
def senses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Senses]:
    """A server with an index of half of a corpus's words, the corpus, and the model."""
    folder = Path(tmp_path_factory.mktemp("served-senses"))
    rare: list[Document] = [("word1 okapi word2 .", {})]
    corpus = make_corpus(folder, documents(1) + rare, meta=("year",))
    torch.manual_seed(1)
    model_of(corpus).save(folder / "model", card="A model for tests.")
    make_index(folder / "model", corpus, folder / "index", index={"words": WORDS[:15]})
    served = {"corpus": corpus.folder, "index": folder / "index"}
    with client_of(app_serving(folder / "model", **served)) as client:
        yield client, corpus.folder, folder / "model"


@pytest.mark.parametrize("finer", [0, 1])
@pytest.mark.parametrize(("word", "is_indexed"), [("word3", True), ("word20", False)])
def test_groups_are_those_of_the_library(
    senses: Senses, word: str, is_indexed: bool, finer: int
) -> None:
    """Of a word of the index, and of one that only the model can describe."""
    client, corpus, model = senses
    answer = client.post("/senses", json={"word": word, "finer": finer})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    source: dict[str, Any] = {"index": model.parent / "index"} if is_indexed else {"model": model}
    expected = api.senses(corpus, word, finer=finer, **source)
    assert told["uses"] == len(expected.uses)
    assert told == json.loads(json.dumps(expected.to_json()))
    assert client.post("/senses", json={"word": word, "finer": finer}).json() == told


def test_the_index_is_read_and_the_model_is_not(
    senses: Senses, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, corpus, model = senses

    def refuse(*_: Any) -> Any:
        raise AssertionError("the model is asked")

    monkeypatch.setattr(ModelUseEncoder, "__init__", refuse)
    finder = SenseFinder(str(corpus), str(model), str(model.parent / "index"))
    expected = client.post("/senses", json={"word": "word5"}).json()
    assert json.loads(json.dumps(finder({"word": "word5", "finer": 0}))) == expected
    with pytest.raises(AssertionError, match="the model is asked"):
        finder({"word": "word21", "finer": 0})


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (404, {"word": "zebra"}, "no use of this word"),
        (404, {"word": "zebra crossing"}, "no use of this word"),
        (404, {"word": "d0"}, "no use of this word"),
        (404, {"word": "okapi"}, "too few uses of this word to group them: 1."),
        (400, {"word": "   "}, "word"),
        (400, {"word": "word3", "finer": 4}, "finer"),
        (400, {"word": "word3", "groups": 2}, "not as documented"),
        (400, {"word": "w" * 101}, "word"),
    ],
)
def test_a_word_that_cannot_be_grouped_is_refused_without_repeating_it(
    senses: Senses, status: int, body: dict[str, Any], told: str
) -> None:
    client, corpus, _ = senses
    answer = client.post("/senses", json=body)
    assert answer.status_code == status, answer.text
    assert told in answer.json()["error"]["message"]
    assert not {"zebra", "okapi"} & set(re.findall(r"\w+", answer.text))
    assert str(corpus) not in answer.text


def test_only_the_words_asked_for_last_are_kept(
    senses: Senses, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, corpus, model = senses
    monkeypatch.setattr(SenseFinder, "_KEPT", 2)
    finder = SenseFinder(str(corpus), str(model), str(model.parent / "index"))
    for word in ("word1", "word2", "word1", "word3"):
        finder({"word": word, "finer": 0})
    assert [json.loads(key)[0] for key in finder._found] == ["word1", "word3"]
