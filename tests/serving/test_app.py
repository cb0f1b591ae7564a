"""What the routes answer, and what they refuse before the model is asked."""

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from polyseme.embedding.embedder import Embedder
from polyseme.serving import LimitsConfig
from polyseme.serving.app import Guard
from polyseme.serving.dispatch import Dispatcher, EngineDiedError, Metrics
from serving.making import TEXT, EngineHere, app_of, client_of

KEY = "a-key-of-some-length"
JSON = {"content-type": "application/json"}
LONG = {"content-length": "99999999"}
NINES = b"9" * 999


@pytest.fixture(scope="module")
def asked(tiny_model: Path) -> Iterator[tuple[TestClient, EngineHere]]:
    app, engine = app_of(tiny_model, max_words=200, max_body_bytes=4_000)
    with client_of(app) as client:
        yield client, engine


def floats(text: str, dtype: str = "<f4") -> Any:
    return np.frombuffer(base64.b64decode(text), dtype)


def test_embeddings_are_those_of_encode(
    asked: tuple[TestClient, EngineHere], tiny_model: Path
) -> None:
    client, _ = asked
    embedder = Embedder.load(tiny_model, device="cpu")
    texts = [TEXT, "It rained on the bank."]
    plain = client.post("/v1/embeddings", json={"input": texts}).json()
    packed = client.post(
        "/v1/embeddings", json={"input": texts, "encoding_format": "base64", "model": "x"}
    ).json()
    for number, text in enumerate(texts):
        expected = embedder.encode(text)
        assert np.allclose(plain["data"][number]["embedding"], expected, atol=1e-6)
        assert np.allclose(floats(packed["data"][number]["embedding"]), expected, atol=1e-6)
    words = sum(len(sentence.words) for sentence in embedder.embed(texts))
    assert plain["usage"] == {"prompt_tokens": words, "total_tokens": words}


def test_words_have_their_vectors_and_places(
    asked: tuple[TestClient, EngineHere], tiny_model: Path
) -> None:
    client, _ = asked
    embedder = Embedder.load(tiny_model, device="cpu")
    given: list[Any] = [TEXT, ["the", "bank"]]
    body = {"input": given, "layers": "all", "dtype": "float32"}
    answer = client.post("/v1/words", json=body).json()
    expected = list(embedder.embed(given))
    assert len(answer["sentences"]) == len(expected) == 3
    for found, sentence in zip(answer["sentences"], expected, strict=True):
        assert found["words"] == list(sentence.words)
        assert found["starts"] == (list(sentence.starts) if sentence.starts else None)
        assert found["index"] == sentence.index
        vectors = floats(found["vectors"]).reshape(found["shape"])
        assert np.allclose(vectors, sentence.vectors, atol=1e-6)
    top = client.post("/v1/words", json={"input": TEXT}).json()["sentences"][0]
    assert top["shape"] == [9, embedder.dim]
    half = floats(top["vectors"], "<f2").reshape(top["shape"])
    assert np.allclose(half, expected[0].vectors[-1], atol=2e-3)


def test_embed_all_has_the_vectors_of_a_text_in_one_list(
    asked: tuple[TestClient, EngineHere], tiny_model: Path
) -> None:
    client, _ = asked
    embedder = Embedder.load(tiny_model, device="cpu")
    answer = client.post("/embed_all", json={"inputs": [TEXT, "It rained."]}).json()
    for number, text in enumerate([TEXT, "It rained."]):
        expected = np.concatenate([each.vectors for each in embedder.embed(text, layers="top")])
        assert np.allclose(answer[number], expected, atol=1e-6)


REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "no body": (400, {"content": b"", "headers": JSON}),
    "no JSON": (400, {"content": b"{", "headers": JSON}),
    "text instead of JSON": (415, {"content": b"hello"}),
    "a form": (415, {"data": {"input": "x"}}),
    "no input": (400, {"json": {}}),
    "empty input": (400, {"json": {"input": ""}}),
    "empty list": (400, {"json": {"input": []}}),
    "empty text in a list": (400, {"json": {"input": ["a", ""]}}),
    "a number": (400, {"json": {"input": 3}}),
    "numbers of tokens": (400, {"json": {"input": [1, 2]}}),
    "null": (400, {"content": b"null", "headers": JSON}),
    "a list": (400, {"json": []}),
    "an unknown field": (400, {"json": {"input": "a", "texts": "b"}}),
    "an unknown format": (400, {"json": {"input": "a", "encoding_format": "hex"}}),
    "other dimensions": (400, {"json": {"input": "a", "dimensions": 7}}),
    "no dimension": (400, {"json": {"input": "a", "dimensions": 0}}),
    "true for a number": (400, {"json": {"input": "a", "dimensions": True}}),
    "too many inputs": (400, {"json": {"input": ["a"] * 33}}),
    "too many words": (400, {"json": {"input": "a b " * 150}}),
    "a body too large": (413, {"json": {"input": "a" * 5_000}}),
    "a body said to be too large": (413, {"content": b"{}", "headers": {**JSON, **LONG}}),
    "chunks without end": (413, {"content": iter([b"x" * 1_000] * 99), "headers": JSON}),
    "a long word": (400, {"json": {"input": "a" * 1_001}}),
    "depth": (400, {"content": b"[" * 3_000, "headers": JSON}),
    "depth in a field": (400, {"content": b'{"input":%b1}' % (b"[" * 1_500), "headers": JSON}),
    "a lone surrogate": (400, {"content": b'{"input":"\\ud800"}', "headers": JSON}),
    "no UTF-8": (400, {"content": b'{"input":"\xff"}', "headers": JSON}),
    "NaN": (400, {"content": b'{"input":"a","dimensions":NaN}', "headers": JSON}),
    "a large number": (400, {"content": b'{"input":"a","dimensions":%b}' % NINES, "headers": JSON}),
    "two roots": (400, {"content": b'{"input":"a"}{}', "headers": JSON}),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_request_out_of_bounds_is_refused_before_the_model(
    asked: tuple[TestClient, EngineHere], what: str
) -> None:
    client, engine = asked
    status, request = REFUSED[what]
    before = engine.embedded
    answer = client.post("/v1/embeddings", **request)
    assert answer.status_code == status, answer.text
    assert engine.embedded == before
    told = answer.json()
    assert set(told) == {"error", "request_id"}
    assert told["request_id"] == answer.headers["x-request-id"]
    assert not re.search(r'0x[0-9a-f]{4}|File "|Traceback|polyseme/', answer.text)
    assert "aaaa" not in answer.text  # nothing of the text


def test_a_text_of_spaces_has_zeros(asked: tuple[TestClient, EngineHere]) -> None:
    client, _ = asked
    answer = client.post("/v1/embeddings", json={"input": " "}).json()
    assert not any(answer["data"][0]["embedding"])


def test_one_bad_request_of_a_batch_is_refused_alone(
    asked: tuple[TestClient, EngineHere],
) -> None:
    _, engine = asked
    good = {"kind": "embeddings", "input": ["It rained."], "layers": "average"}
    bad = {**good, "input": ["a b " * 150]}
    unknown = {**good, "kind": "words", "layers": 9, "dtype": "float32"}
    told, payload = engine.engine.answer([good, bad, unknown, good])
    assert [("refused" in each) for each in told] == [False, True, True, False]
    first, last = (payload[slice(*told[n]["bytes"])] for n in (0, 3))
    assert first == last
    assert first


@pytest.fixture(scope="module")
def closed(tiny_model: Path) -> Iterator[tuple[TestClient, Guard]]:
    app, _ = app_of(tiny_model, keys=(KEY, "another-key-of-some-length"))
    with client_of(app) as client:
        yield client, app


def test_every_route_and_method_needs_a_key(closed: tuple[TestClient, Guard]) -> None:
    client, app = closed
    paths = [
        *json.loads(_get(client, "/openapi.json", KEY).content)["paths"],
        "/openapi.json",
        "/x",
    ]
    assert len(paths) >= 9
    for path in paths:
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            for key in ("", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer", "\xff"):
                answer = client.request(
                    method, path, headers={b"authorization": key.encode("latin-1")}
                )
                if path in ("/livez", "/readyz"):
                    assert answer.status_code == (200 if method in ("GET", "HEAD") else 405)
                else:
                    assert answer.status_code == 401, (method, path, key)
                    assert answer.headers["www-authenticate"] == "Bearer"
            answer = client.request(method, path, headers={"authorization": f"Bearer {KEY}"})
            assert answer.status_code != 401
    assert _get(client, "/info", "another-key-of-some-length").status_code == 200
    assert app.serving.keys


def _get(client: TestClient, path: str, key: str) -> Any:
    return client.get(path, headers={"authorization": f"bearer {key}"})


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
def test_without_keys_no_web_page_may_ask(
    asked: tuple[TestClient, EngineHere], headers: dict[str, str]
) -> None:
    client, _ = asked
    assert client.get("/info", headers=headers).status_code == 403


def test_metrics_count_requests_by_route_and_status(asked: tuple[TestClient, EngineHere]) -> None:
    client, _ = asked

    def count() -> float:
        text = client.get("/metrics").text
        found = re.search(r'requests_total{route="/embed_all",status="200"} (\S+)', text)
        return float(found[1]) if found else 0.0

    before = count()
    client.post("/embed_all", json={"inputs": "a"})
    assert count() == before + 1


def test_info_tells_the_model_and_the_limits(asked: tuple[TestClient, EngineHere]) -> None:
    client, _ = asked
    told = client.get("/info").json()
    assert told["model"] == "tiny"
    assert told["limits"]["max_words"] == 200
    assert told["num_layers"] == 3
    assert "/v1/words" in told["routes"]


def test_a_client_may_name_its_request(asked: tuple[TestClient, EngineHere]) -> None:
    client, _ = asked
    assert (
        client.get("/livez", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    )
    odd = client.get("/livez", headers={"x-request-id": "a b"}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", odd)


def test_an_engine_that_dies_while_it_loads_for_the_first_time_is_a_failure() -> None:
    """Not started over and over: the server ends, and says so."""

    class Dies(EngineHere):
        async def start(self) -> dict[str, Any]:
            raise EngineDiedError

    async def failure() -> str:
        dispatcher = Dispatcher(Dies({}), LimitsConfig(), Metrics())
        running = asyncio.ensure_future(dispatcher.run())
        while not dispatcher.failure:
            await asyncio.sleep(0.01)
        running.cancel()
        return dispatcher.failure

    assert "while it loaded" in asyncio.run(asyncio.wait_for(failure(), 10))


def test_the_openapi_document_has_every_route_with_an_example_that_works(
    asked: tuple[TestClient, EngineHere],
) -> None:
    client, _ = asked
    document = client.get("/openapi.json").json()
    posted = {path: told["post"] for path, told in document["paths"].items() if "post" in told}
    assert set(posted) == {"/v1/embeddings", "/v1/words", "/embed_all"}
    for path, told in posted.items():
        example = told["requestBody"]["content"]["application/json"]["example"]
        assert client.post(path, json=example).status_code == 200
