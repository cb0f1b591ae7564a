"""Serve word vectors, predictions and senses over HTTP.

Answers in the forms of OpenAI's embeddings (/v1/embeddings) and text-embeddings-inference
(/embed_all), and vectors of every word (/v1/words); with a task /predict, with a corpus /senses.
/openapi.json describes them. Beyond this machine (--host 0.0.0.0) clients need an API key. When too
many requests wait, others are told to come back (status 429); SIGTERM answers what was accepted.

Examples:

  polyseme serve en-base

  polyseme serve en-base --task tasks/ner --port 9000

  polyseme serve en-base --in corpus/en --index index/en

  polyseme serve en-base --host 0.0.0.0 --api-key-file keys.txt
"""

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import RenderableType

from polyseme.config import Settings
from polyseme.errors import ConfigError, InputError, extra_needed_for
from polyseme.limits import TOML_BYTES, read_text
from polyseme.progress import NullProgress, Progress

if TYPE_CHECKING:
    from polyseme.serving.dispatch import LimitsConfig


class ServeConfig(Settings):
    """What is served, where, and to whom."""

    arguments: ClassVar[tuple[str, ...]] = ("model",)

    model: str
    """The model: a folder, a name that `polyseme models` shows, or hf:FOLDER."""
    task: Path | None = None
    """Also serve this trained task, at /predict."""
    in_: Path | None = None
    """Also serve senses of words in this corpus, at /senses."""
    index: Path | None = None
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
    max_body_bytes: int = Field(2 << 20, ge=1)
    """Bytes of a request's body."""
    max_inputs: int = Field(32, ge=1)
    """Texts in a request."""
    max_words: int = Field(1 << 14, ge=1)
    """Words in a request."""
    max_queue: int = Field(1_024, ge=1)
    """Requests that wait at most."""
    max_wait: float = Field(0.5, gt=0)
    """Seconds that a request may have to wait for others, by estimate; beyond, it is refused."""
    timeout: float = Field(30.0, gt=0)
    """Seconds after which a request fails."""


@dataclass(frozen=True)
class ServeResult:
    """Where it was served."""

    address: str


def run(config: ServeConfig, progress: Progress | None = None) -> ServeResult:
    """Listen until a signal."""
    progress = progress or NullProgress()
    keys = _read_keys(config)
    if config.index is not None and config.in_ is None:
        raise ConfigError("--index is of a corpus: name it with --in CORPUS.")
    with extra_needed_for("Serving"):
        from polyseme.serving.server import serve

    listening = _listen(config)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def tell() -> None:
        progress.log(f"Serving {config.model} at {address}. Stop it with Ctrl-C.")
        progress.log(f"Try: curl {address}/v1/embeddings -H 'Content-Type: application/json' "
                     "-d '{\"input\": \"She sat on the bank.\"}'")  # fmt: skip

    progress.log(f"Loading {config.model}...")
    with listening:
        serve(
            Path(config.model).name,
            _engines(config),
            _limits(config),
            listening,
            keys=keys,
            on_ready=tell,
        )
    return ServeResult(address)


def _limits(config: ServeConfig) -> "LimitsConfig":
    from polyseme.serving.dispatch import LimitsConfig

    names = LimitsConfig.model_fields.keys() & ServeConfig.model_fields.keys()
    return LimitsConfig(**{name: getattr(config, name) for name in names})


def _engines(config: ServeConfig) -> dict[tuple[str, ...], dict[str, Any]]:
    """The settings of each engine, by the kinds of requests it answers."""
    shared: dict[str, Any] = {
        "model": config.model,
        "task": None if config.task is None else str(config.task),
        "corpus": None if config.in_ is None else str(config.in_),
        "index": None if config.index is None else str(config.index),
        "threads": config.threads,
        "device": config.device,
        "tokenizer_from": config.tokenizer_from,
        "batch_invariant": config.batch_invariant,
        "max_words": config.max_words,
        "max_word_characters": _limits(config).max_word_characters,
    }
    kinds = ["embeddings", "words", "embed_all"] + ["predict"] * (config.task is not None)
    engines = {tuple(kinds): {**shared, "role": "vectors"}}
    if config.in_ is not None:  # a word's senses take seconds, which vectors must not wait for
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
    try:
        lines = read_text(config.api_key_file, TOML_BYTES).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{config.api_key_file} cannot be read: {error}") from error
    keys = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
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


def _listen(config: ServeConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # Named as TCP, or asyncio would not turn off Nagle's algorithm: 40 ms for each answer.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((config.host, config.port))
        taken.listen(2048)
    except OSError as error:
        taken.close()
        raise ConfigError(
            f"Cannot listen on port {config.port} of {config.host}: {error.strerror}. Choose "
            "another with --port; 0 uses a free one."
        ) from error
    taken.setblocking(False)
    return taken


def show(result: ServeResult) -> RenderableType:
    """That it ended."""
    return f"Stopped serving at {result.address}."
