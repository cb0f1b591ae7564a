"""The routes of a server: what may be asked, how it is asked of an engine, how it is answered.

    in   dispatchers with an engine each, limits, API keys
    out  an ASGI application

Routes have the shapes that other servers have given them: OpenAI's embeddings,
text-embeddings-inference's `embed_all`. Each is one row of `ENDPOINTS`, from which the OpenAPI
document is made as well. No text of a request is logged or repeated in an error.
"""

import asyncio
import base64
import contextlib
import hashlib
import logging
import re
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyseme import __version__
from polyseme.serving import LimitsConfig
from polyseme.serving.dispatch import Answer, Dispatcher, Metrics, Refused

_log = logging.getLogger(__name__)
_OPEN = ("/livez", "/readyz")
"""What an orchestrator asks without a key."""
_LOOPBACK = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]
Words = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


def _whole(value: Any) -> Any:
    """In JSON 1.0 is a whole number as well."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)
"""After the bounds of a number: before them, its schema would lose them."""


class _Asked(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class EmbeddingsRequest(_Asked):
    """As OpenAI has it."""

    input: Text | Annotated[list[Text], Field(min_length=1)]
    """A text, or several."""
    model: str | None = None
    """Ignored: the server has one model."""
    encoding_format: Literal["float", "base64"] = "float"
    """Numbers, or little-endian float32 in base64."""
    dimensions: Annotated[int, Field(ge=1), _WHOLE] | None = None
    """The model's own number, if given."""
    user: str | None = None
    """Ignored."""


class WordsRequest(_Asked):
    """Vectors of every word."""

    input: Text | Annotated[list[Text | Words], Field(min_length=1)]
    """A text, or several; a list of words is one sentence."""
    layers: Literal["all", "top", "average"] | Annotated[int, Field(ge=-64, le=63), _WHOLE] = "top"
    """Which layers; 0 is the word without its sentence."""
    dtype: Literal["float16", "float32"] = "float16"
    """How the numbers of `vectors` are stored, little-endian."""


class EmbedAllRequest(_Asked):
    """As text-embeddings-inference has it."""

    inputs: Text | Annotated[list[Text], Field(min_length=1)]
    """A text, or several."""
    truncate: bool | None = None
    """Ignored: long texts are read in parts."""
    truncation_direction: Literal["Left", "Right"] = "Right"
    """Ignored."""
    prompt_name: None = None
    """Not supported."""


class PredictRequest(_Asked):
    """What a task finds."""

    inputs: (
        Text
        | Annotated[list[Text | Annotated[list[Text], Field(max_length=8)]], Field(min_length=1)]
    )
    """A text, or several; for a task on pairs, lists of two."""
    probabilities: bool = False
    """Also how probable it is."""


class SensesRequest(_Asked):
    """Groups of a word's uses in the server's corpus."""

    word: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*\S[^\x00]*$")]
    """The word, or several with spaces between."""
    finer: Annotated[int, Field(ge=-3, le=3), _WHOLE] = 0
    """More groups, or if negative fewer."""


class Embedding(BaseModel):
    """The vector of a text."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """How much was read."""

    prompt_tokens: int
    """Words."""
    total_tokens: int


class EmbeddingsResponse(BaseModel):
    """A vector for each text: the mean over its words and over all layers."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class SentenceVectors(BaseModel):
    """A sentence, and the vectors of its words."""

    index: int
    """Which of the inputs it is of."""
    words: list[str]
    starts: list[int] | None
    """Where each word begins, in characters of the normalized text; none for lists of words."""
    shape: list[int]
    """Layers if all were asked for, words, dimensions."""
    vectors: str
    """The numbers, in base64."""
    chunks: int
    """Parts that were read apart; 1 unless the sentence is very long."""
    truncated_characters: int
    """Characters at the ends of overlong words, not read."""


class WordsResponse(BaseModel):
    """All sentences, in order."""

    model: str
    dtype: str
    sentences: list[SentenceVectors]
    usage: Usage


class PredictResponse(BaseModel):
    """What was found, in the order of the inputs; the fields are those of `polyseme predict`."""

    data: list[dict[str, Any]]


class SensesResponse(BaseModel):
    """As `polyseme senses --json` has it."""

    model_config = ConfigDict(extra="allow")


class Fault(BaseModel):
    """Why there is no answer."""

    message: str
    type: str
    code: str


class ErrorResponse(BaseModel):
    """As OpenAI has it."""

    error: Fault
    request_id: str


@dataclass(frozen=True)
class Endpoint:
    """A route: its request's and its response's form, and the way between."""

    path: str
    kind: str
    summary: str
    request: type[BaseModel]
    response: Any
    example: dict[str, Any]
    ask: Callable[[Any], dict[str, Any]]
    tell: "Callable[[Any, Answer, Serving], Any]"
    least_cost: int = 0
    """In characters, for what takes long however short it is asked."""


@dataclass
class Serving:
    """What the routes share."""

    name: str
    """Of the model, as it is told to clients."""
    dispatchers: Mapping[str, Dispatcher]
    """By kind of request."""
    limits: LimitsConfig
    metrics: Metrics
    keys: tuple[str, ...] = ()
    is_draining: bool = False
    in_flight: int = 0

    @property
    def engines(self) -> list[Dispatcher]:
        """Each dispatcher once."""
        return list({id(each): each for each in self.dispatchers.values()}.values())

    @property
    def about(self) -> dict[str, Any]:
        """What the engines have loaded."""
        told: dict[str, Any] = {}
        for engine in self.engines:
            told |= engine.about or {}
        return told

    @property
    def is_ready(self) -> bool:
        """Whether all engines can answer, and new requests are wanted."""
        return not self.is_draining and all(each.is_ready for each in self.engines)


def _inputs(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) else list(given)


def _tell_embeddings(request: EmbeddingsRequest, answer: Answer, serving: Serving) -> Any:
    vectors = np.frombuffer(answer.numbers, "<f4").reshape(len(_inputs(request.input)), -1)
    as_text = request.encoding_format == "base64"
    found = [base64.b64encode(row.tobytes()).decode() for row in vectors] if as_text else vectors
    data = [
        {"object": "embedding", "index": index, "embedding": each}
        for index, each in enumerate(found)
    ]
    return {"object": "list", "data": data, "model": serving.name, "usage": _usage(answer)}


def _usage(answer: Answer) -> dict[str, int]:
    return dict.fromkeys(("prompt_tokens", "total_tokens"), answer.told["num_words"])


def _arrays(answer: Answer, dtype: str) -> list[Any]:
    """The vectors of each sentence."""
    numbers = np.frombuffer(answer.numbers, np.dtype(dtype).newbyteorder("<"))
    shapes = answer.told["shapes"]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes], dtype=int)
    return [part.reshape(shape) for part, shape in zip(np.split(numbers, ends), shapes)]  # noqa: B905  # a last, empty part


def _tell_words(request: WordsRequest, answer: Answer, serving: Serving) -> Any:
    told = answer.told
    names = "words", "starts", "chunks", "truncated_characters"
    sentences = [
        {
            "index": told["indices"][n],
            **{name: told[name][n] for name in names},
            "shape": vectors.shape,
            "vectors": base64.b64encode(vectors.tobytes()).decode(),
        }
        for n, vectors in enumerate(_arrays(answer, request.dtype))
    ]
    return {
        "model": serving.name,
        "dtype": request.dtype,
        "sentences": sentences,
        "usage": _usage(answer),
    }


def _tell_embed_all(request: EmbedAllRequest, answer: Answer, serving: Serving) -> Any:
    del serving
    found: list[list[Any]] = [[] for _ in _inputs(request.inputs)]
    for index, vectors in zip(answer.told["indices"], _arrays(answer, "float32"), strict=True):
        found[index] += list(vectors)
    return found


def _ask(kind: str, *options: str, **fixed: Any) -> Callable[[Any], dict[str, Any]]:
    """The question for an engine: the texts, and these fields of the request."""

    def question(request: Any) -> dict[str, Any]:
        texts = request.inputs if hasattr(request, "inputs") else request.input
        given = {name: getattr(request, name) for name in options}
        return {"kind": kind, "input": _inputs(texts), **given, **fixed}

    return question


def _told(request: Any, answer: Answer, serving: Serving) -> Any:
    del request, serving
    return {name: value for name, value in answer.told.items() if name not in _OF_THE_ENGINE}


_OF_THE_ENGINE = "bytes", "num_words"
_TEXT = "She sat on the bank of the river."
ENDPOINTS = (
    Endpoint(
        "/v1/embeddings",
        "embeddings",
        "A vector for each text, in OpenAI's form",
        EmbeddingsRequest,
        EmbeddingsResponse,
        {"input": _TEXT},
        _ask("embeddings", "dimensions", layers="average"),
        _tell_embeddings,
    ),
    Endpoint(
        "/v1/words",
        "words",
        "Vectors of every word in its sentence, with its place in the text",
        WordsRequest,
        WordsResponse,
        {"input": [_TEXT], "layers": "top"},
        _ask("words", "layers", "dtype"),
        _tell_words,
    ),
    Endpoint(
        "/embed_all",
        "embed_all",
        "Vectors of every word as numbers, in the form of text-embeddings-inference",
        EmbedAllRequest,
        list[list[list[float]]],
        {"inputs": _TEXT},
        _ask("embed_all", layers="top", dtype="float32"),
        _tell_embed_all,
    ),
    Endpoint(
        "/predict",
        "predict",
        "What a trained task finds",
        PredictRequest,
        PredictResponse,
        {"inputs": ["Ada Lovelace lived in London."]},
        _ask("predict", "probabilities"),
        _told,
    ),
    Endpoint(
        "/senses",
        "senses",
        "The uses of a word in the server's corpus, in groups",
        SensesRequest,
        SensesResponse,
        {"word": "bank"},
        lambda request: {"kind": "senses", **request.model_dump()},
        _told,
        least_cost=1_000,
    ),
)


def make_app(serving: Serving) -> ASGIApp:
    """The application: the routes whose engine there is, behind keys and limits."""
    serving.metrics.accepted.set_function(lambda: serving.in_flight)
    serving.metrics.waiting.set_function(
        lambda: sum(engine.num_waiting for engine in serving.engines)
    )
    offered = [each for each in ENDPOINTS if each.kind in serving.dispatchers]

    async def describe(request: Request) -> Response:
        del request
        return Response(orjson.dumps(openapi(offered, serving)), media_type="application/json")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run()) for each in serving.engines]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    app = Starlette(
        routes=[
            *(Route(each.path, _answering(each), methods=["POST"]) for each in offered),
            Route("/info", _info),
            Route("/livez", _live),
            Route("/readyz", _ready),
            Route("/metrics", _metrics),
            Route("/openapi.json", describe),
        ],
        exception_handlers={HTTPException: _http_fault, Exception: _fault},
        lifespan=lifespan,
    )
    app.state.serving = serving
    return Guard(app, serving)


def _answering(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """What answers a route: reads the request, asks the engine, forms the answer."""

    async def answer(request: Request) -> Response:
        serving: Serving = request.app.state.serving
        began = time.monotonic()
        serving.in_flight += 1
        try:
            if serving.is_draining:
                raise Refused(503, "shutting_down", "The server is shutting down.", retry_after=5)
            body = await _read_body(request, serving.limits)
            asked = _parse(endpoint, body, serving.limits)
            dispatcher = serving.dispatchers[endpoint.kind]
            told = await _while_client_waits(
                request, dispatcher.submit(endpoint.ask(asked), max(len(body), endpoint.least_cost))
            )
            content = orjson.dumps(
                endpoint.tell(asked, told, serving), option=orjson.OPT_SERIALIZE_NUMPY
            )
            response = Response(content, media_type="application/json")
        except Refused as refused:
            response = _error(refused, request.scope["request_id"])
        except ClientDisconnect:
            response = Response(status_code=499)  # nobody reads it
        finally:
            serving.in_flight -= 1
        serving.metrics.requests.labels(endpoint.path, response.status_code).inc()
        serving.metrics.seconds.labels(endpoint.path).observe(time.monotonic() - began)
        return response

    return answer


async def _read_body(request: Request, limits: LimitsConfig) -> bytes:
    """The body, if it is JSON by its type, small enough and comes in time."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "unsupported_media_type", "Send JSON, as application/json.")
    most = limits.max_body_bytes
    too_large = Refused(413, "too_large", f"A body has at most {most:,} bytes.")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(min(10.0, limits.timeout)):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large
                parts.append(part)
    except TimeoutError as error:
        raise Refused(408, "slow_body", "The body did not come in time.") from error
    return b"".join(parts)


def _parse(endpoint: Endpoint, body: bytes, limits: LimitsConfig) -> BaseModel:
    try:
        asked = endpoint.request.model_validate_json(body)
    except ValidationError as error:
        # Where something is wrong, not what stands there: that is the client's text.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(
            str(part) for part in first["loc"] if part in endpoint.request.model_fields
        )
        raise Refused(400, "invalid_request", f"{place or 'body'}: not as documented.") from error
    for name in ("input", "inputs"):
        given = getattr(asked, name, "")
        if not isinstance(given, str) and len(given) > limits.max_inputs:
            raise Refused(400, "too_many_inputs", f"At most {limits.max_inputs} inputs at once.")
    return asked


async def _while_client_waits(request: Request, work: Awaitable[Answer]) -> Answer:
    """The result of some work, which is given up when the client leaves."""
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # after the body, only that can come
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        leaving.cancel()
        doing.cancel()


class Guard:
    """Around all routes: who may ask, the request's id, and headers of every answer."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app, self.serving = app, serving
        self._hashes = [hashlib.sha256(key.encode()).digest() for key in serving.keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        number = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope["request_id"] = number

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                own["x-request-id"] = number
                own["cache-control"] = "no-store"
                own["x-content-type-options"] = "nosniff"
                if self.serving.is_draining:
                    own["connection"] = "close"
            await send(message)

        refused = self._refusal(scope["path"], headers)
        app: ASGIApp = self._app if refused is None else _error(refused, number)
        await app(scope, receive, send_guarded)

    def _refusal(self, path: str, headers: Headers) -> Refused | None:
        if path in _OPEN:
            return None
        if not self._hashes:
            # Loopback alone. A site in a browser of this machine may have a name that leads here.
            if _LOOPBACK.fullmatch(headers.get("host", "")) and "origin" not in headers:
                return None
            return Refused(403, "forbidden", "This server answers programs on its machine only.")
        scheme, _, key = headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(key.strip().encode("utf-8", "surrogateescape")).digest()
        known = [secrets.compare_digest(digest, each) for each in self._hashes]
        if scheme.lower() == "bearer" and any(known):
            return None
        return Refused(401, "unauthorized", "An API key is needed: Authorization: Bearer KEY.")


def _error(refused: Refused, request_id: str) -> Response:
    headers = {} if refused.retry_after is None else {"Retry-After": str(refused.retry_after)}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    fault = {"message": refused.message, "type": kind, "code": refused.code}
    content = orjson.dumps({"error": fault, "request_id": request_id})
    return Response(content, refused.status, headers, "application/json")


async def _http_fault(request: Request, error: Exception) -> Response:
    """No such route, or no such method."""
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "method_not_allowed"}
    code = codes.get(error.status_code, "invalid_request")
    refused = Refused(error.status_code, code, code.replace("_", " ").capitalize() + ".")
    response = _error(refused, request.scope["request_id"])
    response.headers.update(error.headers or {})
    return response


async def _fault(request: Request, error: Exception) -> Response:
    """A mistake of ours; the log has where, and not what the client sent."""
    request_id = request.scope["request_id"]
    _log.error("Request %s failed: %s", request_id, type(error).__name__)
    return _error(Refused(500, "internal", "The server failed."), request_id)


async def _info(request: Request) -> Response:
    """What is served."""
    serving: Serving = request.app.state.serving
    told = {
        "model": serving.name,
        "polyseme": __version__,
        **serving.about,
        "limits": serving.limits.model_dump(mode="json"),
        "routes": [each.path for each in ENDPOINTS if each.kind in serving.dispatchers],
    }
    return Response(orjson.dumps(told), media_type="application/json")


async def _live(request: Request) -> Response:
    """The server runs."""
    del request
    return Response(b'{"status":"ok"}', media_type="application/json")


async def _ready(request: Request) -> Response:
    """The model is loaded, gives the vectors it should, and requests are welcome."""
    serving: Serving = request.app.state.serving
    if serving.is_ready:
        return Response(b'{"status":"ready"}', media_type="application/json")
    refused = Refused(503, "not_ready", "The server is not ready.", retry_after=1)
    return _error(refused, request.scope["request_id"])


async def _metrics(request: Request) -> Response:
    """For Prometheus."""
    serving: Serving = request.app.state.serving
    return Response(generate_latest(serving.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def openapi(offered: Sequence[Endpoint], serving: Serving) -> dict[str, Any]:
    """The OpenAPI document of these routes, with the bounds of this model once it is loaded."""
    with_keys = bool(serving.keys)
    models = [each.request for each in offered] + [
        each.response for each in offered if isinstance(each.response, type)
        and issubclass(each.response, BaseModel)
    ] + [ErrorResponse]  # fmt: skip
    _, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    faults = {
        str(status): {
            "description": meaning,
            "content": {"application/json": {"schema": _ref(ErrorResponse)}},
        }
        for status, meaning in _STATUSES.items()
        if with_keys or status != 401
    }
    _bound(schemas.get("$defs", {}), serving)
    paths: dict[str, Any] = {
        each.path: {
            "post": {
                "operationId": each.kind,
                "summary": each.summary,
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": _ref(each.request), "example": each.example}
                    },
                },
                "responses": {
                    "200": {
                        "description": "The answer.",
                        "content": {"application/json": {"schema": _ref(each.response)}},
                    },
                    **faults,
                },
            }
        }
        for each in offered
    }
    for path, summary in _ABOUT.items():
        content = "text/plain" if path == "/metrics" else "application/json"
        answers: dict[str, Any] = {"200": {"description": summary, "content": {content: {}}}}
        answers |= {status: faults[status] for status in ("401", "403", "503") if status in faults}
        paths[path] = {
            "get": {"operationId": path[1:].partition(".")[0], "summary": summary,
                    "responses": answers}
        }  # fmt: skip
        if path in _OPEN:
            paths[path]["get"]["security"] = []
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Polyseme", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas.get("$defs", {})},
    }
    if with_keys:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _bound(schemas: dict[str, Any], serving: Serving) -> None:
    """Put into schemas what the model and the limits allow."""
    about = serving.about
    for schema in schemas.values():
        for name, told in schema.get("properties", {}).items():
            for choice in told.get("anyOf", ()):
                if name in ("input", "inputs") and choice.get("type") == "array":
                    choice["maxItems"] = serving.limits.max_inputs
                if name == "inputs" and "anyOf" in choice.get("items", {}):
                    _bound_texts(choice["items"], about.get("num_texts"))
                if name == "layers" and choice.get("type") == "integer" and "num_layers" in about:
                    choice["minimum"] = -about["num_layers"]
                    choice["maximum"] = about["num_layers"] - 1
                if name == "dimensions" and choice.get("type") == "integer" and "dim" in about:
                    choice["minimum"] = choice["maximum"] = about["dim"]


def _bound_texts(items: dict[str, Any], num_texts: int | None) -> None:
    """How many texts belong together, in the schema of a task's inputs."""
    text, together = items["anyOf"]
    if num_texts == 1:
        items["anyOf"] = [text]
    elif num_texts is not None:
        items["anyOf"] = [{**together, "minItems": num_texts, "maxItems": num_texts}]


_STATUSES = {
    400: "The request is not as documented.",
    401: "An API key is needed.",
    403: "Not from here.",
    404: "There is nothing of what was asked for.",
    408: "The body did not come in time.",
    413: "The request is too large.",
    415: "The body is not JSON.",
    429: "Too many requests are waiting; try again after Retry-After seconds.",
    503: "Not ready, or shutting down.",
    504: "The answer took too long.",
}
_ABOUT = {
    "/info": "What is served",
    "/livez": "Whether the server runs",
    "/readyz": "Whether it can answer",
    "/metrics": "Figures for Prometheus",
}


def _ref(model: Any) -> dict[str, Any]:
    if isinstance(model, type) and issubclass(model, BaseModel):
        return {"$ref": f"#/components/schemas/{model.__name__}"}
    number: dict[str, Any] = {"type": "number"}
    for _ in range(3):
        number = {"type": "array", "items": number}
    return number
