"""Serve word vectors, predictions and senses over HTTP.

Compatible with OpenAI's embeddings (/v1/embeddings) and text-embeddings-inference (/embed_all).
/v1/words returns a vector for every word; with a task there is /predict, with a corpus /senses.
/openapi.json describes them all. Clients on other machines (--host 0.0.0.0) need an API key. When
the queue is full, new requests get status 429. On SIGTERM, accepted requests are still answered.

Examples:

  polyseme serve en-base

  polyseme serve en-base --task tasks/ner --port 9000

  polyseme serve en-base --in corpus/en --index index/en

  polyseme serve en-base --host 0.0.0.0 --api-key-file keys.txt
"""

import asyncio
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field
from rich.console import RenderableType

from polyseme.commands import read_list
from polyseme.config import MayBeRemote, Option, OptionalFolder, Settings
from polyseme.errors import (
    ConfigError,
    MissingExtraError,
    ModelError,
    extra_needed_for,
)
from polyseme.processes import open_port
from polyseme.progress import SILENT, Progress
from polyseme.serving import LimitsConfig


class ServeConfig(Settings):
    """What is served, where, and to whom."""

    arguments: ClassVar[tuple[str, ...]] = ("model",)

    model: str
    """The model: a folder, a name that `polyseme models` shows, or hf:FOLDER."""
    task: OptionalFolder = None
    """Also serve this trained task, at /predict."""
    corpus: Annotated[Path | None, MayBeRemote, Option("--in", "CORPUS")] = None
    """Also serve senses of words in this corpus, at /senses."""
    index: OptionalFolder = None
    """Read the uses of words from this index (`polyseme index`)."""
    host: str = "127.0.0.1"
    """The address to listen on; any but a loopback address needs --api-key-file."""
    port: int = Field(8080, ge=0, le=65535)
    """The port; 0 uses a free one."""
    api_key_file: Path | None = None
    """File with the API keys of clients, one per line."""
    batch_invariant: bool = False
    """The same bits for a text whatever it is embedded with; slower."""
    threads: int | None = Field(None, ge=1)
    """Threads of the model; by default as many as there are processor cores."""
    device: str | None = None
    """cpu, cuda or mps; by default a GPU if there is one."""
    tokenizer_from: str | None = None
    """A language, or the folder of a corpus, for models that do not say how text is split."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """What one request may ask, and how many may wait."""


@dataclass(frozen=True)
class ServeResult:
    """Where it was served."""

    address: str


def run(config: ServeConfig, progress: Progress = SILENT) -> ServeResult:
    """Listen until a signal."""
    keys = _read_keys(config)
    if config.index is not None and config.corpus is None:
        raise ConfigError("--index is of a corpus: name it with --in CORPUS.")
    with extra_needed_for("Serving"):
        from polyseme.serving.server import serve

    listening = open_port(config.port, config.host)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def tell() -> None:
        progress.log(f"Serving {config.model} at {address}. Stop it with Ctrl-C.")
        progress.log(f"Try: curl {address}/v1/embeddings \\")
        progress.log("  -H 'Content-Type: application/json' -d '{\"input\": \"She sat.\"}'")

    progress.log(f"Loading {config.model}...")
    with listening:
        serve(
            Path(config.model).name,
            engines_of(config),
            config.limits,
            listening,
            keys=keys,
            on_ready=tell,
        )
    return ServeResult(address)


def on_ray(config: ServeConfig) -> Any:
    """The same server as an application of Ray Serve, each replica with engines of its own.

    serve run polyseme.commands.serve:on_ray model=en-base api_key_file=keys.txt
    """
    try:
        from ray import serve as ray_serve
    except ImportError as error:
        raise MissingExtraError.of("ray[serve]", purpose="Serving on Ray") from error
    if config.api_key_file is None:  # a proxy of Ray's listens, where we do not see
        raise ConfigError("On Ray clients need a key. Name a file of keys: api_key_file=keys.txt")
    keys, engines, name = _read_keys(config), engines_of(config), Path(config.model).name

    def build() -> Any:
        from polyseme.serving.app import make_app
        from polyseme.serving.server import make_serving

        return make_app(make_serving(name, engines, config.limits, keys))

    class Replica:
        async def check_health(self) -> None:
            """Once its models are loaded and give the right vectors, a replica is asked."""
            serving = self.app.serving  # type: ignore[attr-defined]  # of Ray's wrapper
            while not serving.is_ready:
                if failed := next((each.failure for each in serving.engines if each.failure), ""):
                    raise ModelError(failed)
                await asyncio.sleep(0.05)

    # Our queue refuses what would wait too long; Ray's must not hold it back before.
    replicas = ray_serve.deployment(
        name="polyseme",
        max_ongoing_requests=config.limits.max_queue,
        health_check_timeout_s=120,
        graceful_shutdown_timeout_s=config.limits.timeout,
    )(ray_serve.ingress(build)(Replica))
    return replicas.bind()


def engines_of(config: ServeConfig) -> dict[tuple[str, ...], dict[str, Any]]:
    """The settings of each engine, by the kinds of requests it answers."""
    shared: dict[str, Any] = {
        "model": config.model,
        "task": None if config.task is None else str(config.task),
        "corpus": None if config.corpus is None else str(config.corpus),
        "index": None if config.index is None else str(config.index),
        "threads": config.threads,
        "device": config.device,
        "tokenizer_from": config.tokenizer_from,
        "batch_invariant": config.batch_invariant,
        "max_words": config.limits.max_words,
        "max_word_characters": config.limits.max_word_characters,
    }
    kinds = ["embeddings", "words", "embed_all"] + ["predict"] * (config.task is not None)
    engines = {tuple(kinds): {**shared, "role": "vectors"}}
    if config.corpus is not None:  # a word's senses take seconds, which vectors must not wait for
        engines["senses",] = {**shared, "role": "senses"}
    return engines


def _read_keys(config: ServeConfig) -> tuple[str, ...]:
    """The keys, at least one; none are needed on this machine."""
    if config.api_key_file is None:
        if not _is_loopback(config.host):
            raise ConfigError(
                f"--host {config.host} can be reached from other machines, so clients need a key. "
                "Write one into a file and name it: --api-key-file keys.txt"
            )
        return ()
    keys = tuple(line for line in read_list(config.api_key_file) if not line.startswith("#"))
    if not keys or min(map(len, keys)) < 16:
        raise ConfigError(
            f"{config.api_key_file} needs keys of at least 16 characters, one per line. "
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return keys


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def show(result: ServeResult) -> RenderableType:
    """That it ended."""
    return f"Stopped serving at {result.address}."
