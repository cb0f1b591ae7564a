"""Servers for tests: an application whose engine runs in this process, and real ones."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from embedding.making import reading
from starlette.testclient import TestClient

from polyseme.commands import serve
from polyseme.commands.serve import ServeConfig
from polyseme.config import build
from polyseme.serving import LimitsConfig
from polyseme.serving.app import Guard, Serving, make_app
from polyseme.serving.dispatch import (
    Answer,
    Dispatcher,
    EngineProcess,
    Metrics,
)
from polyseme.serving.engine import Engine

TEXT = "She sat on the bank of the river. It rained."
KINDS = "embeddings", "words", "embed_all"


def save_tiny(folder: Path) -> Path:
    """A tiny model that reads English, in a folder."""
    reading(TEXT, language="en").model.save(folder, card="")
    return folder


def settings_of(model: Path, **changes: Any) -> dict[str, Any]:
    """What an engine is told."""
    return {
        "model": str(model),
        "role": "vectors",
        "task": None,
        "corpus": None,
        "index": None,
        "threads": 1,
        "device": "cpu",
        "tokenizer_from": None,
        "batch_invariant": False,
        "max_words": 1 << 14,
        "max_word_characters": 1_000,
        **changes,
    }


class EngineHere(EngineProcess):
    """An engine without a process; counts the batches that reach the model."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.settings, self.embedded = settings, 0

    async def start(self) -> dict[str, Any]:
        self.engine = Engine.load(self.settings)
        embedder = self.engine.embedder
        if embedder is None:
            return self.engine.about
        stream = embedder.stream

        def counted(sentences: Sequence[Any], **options: Any) -> Any:
            self.embedded += len(sentences)
            return stream(sentences, **options)

        embedder.stream = counted  # type: ignore[assignment, method-assign]
        return self.engine.about

    async def run(self, requests: Sequence[dict[str, Any]]) -> list[Answer]:
        told, payload = self.engine.answer(requests)
        return [
            Answer(each, memoryview(payload)[slice(*each.get("bytes", (0, 0)))]) for each in told
        ]

    async def ended(self) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None:
        pass


def app_of(model: Path, *, keys: tuple[str, ...] = (), **limits: Any) -> tuple[Guard, EngineHere]:
    """An application with a model in this process."""
    engine = EngineHere(settings_of(model, **{n: limits[n] for n in limits if n == "max_words"}))
    metrics, limit = Metrics(), LimitsConfig(**limits)
    dispatcher = Dispatcher(engine, limit, metrics)
    serving = Serving("tiny", dict.fromkeys(KINDS, dispatcher), limit, metrics, keys)
    app = make_app(serving)
    assert isinstance(app, Guard)
    return app, engine


def app_serving(model: Path, **served: Any) -> Guard:
    """All that `polyseme serve` serves with these settings, each engine in this process."""
    config = build(ServeConfig, {"model": str(model), "threads": 1, "device": "cpu", **served})
    metrics, dispatchers = Metrics(), {}
    for kinds, settings in serve.engines_of(config).items():
        dispatcher = Dispatcher(EngineHere(settings), config.limits, metrics)
        dispatchers.update(dict.fromkeys(kinds, dispatcher))
    app = make_app(Serving("tiny", dispatchers, config.limits, metrics))
    assert isinstance(app, Guard)
    return app


@contextmanager
def client_of(app: Guard, **headers: str) -> Iterator[TestClient]:
    """Asks an application without a network, once its model is loaded."""
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        while client.get("/readyz").status_code != 200:
            pass
        yield client


@contextmanager
def serving(
    *arguments: str, timeout: float = 60, under: Sequence[str] = ()
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a real server, which has loaded its model, and its process."""
    process = subprocess.Popen(
        [*under, sys.executable, "-m", "polyseme", "serve", *arguments, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        process_group=0,
    )
    assert process.stderr is not None
    told: list[str] = []
    drain: threading.Thread | None = None
    try:
        for line in process.stderr:
            told.append(line)
            if found := re.search(r" at (http://\S+)\. Stop", line):
                break
        else:
            raise AssertionError("".join(told))
        drain = threading.Thread(target=process.stderr.read, daemon=True)  # or it would block
        drain.start()
        yield found[1], process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout)
        if drain is not None:
            drain.join()
        process.stderr.close()


def children_of(pid: int) -> list[int]:
    """Processes that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(each) for each in text.split()]


def embed(address: str, text: str = TEXT, **options: Any) -> httpx.Response:
    """Ask for the vector of a text."""
    return httpx.post(f"{address}/v1/embeddings", json={"input": text}, timeout=60, **options)
