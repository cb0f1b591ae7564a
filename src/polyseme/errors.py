"""Every error a user can meet, one family tree.

Each message says what happened with the values, what was expected, and what to do next.
`exit_code` follows the sysexits convention, so scripts can tell a bad file from a full disk.
"""

import contextlib
import json
import shlex
from collections.abc import Iterator


class PolysemeError(Exception):
    """A mistake or a failure outside the program; its text is written for the user.

    Each argument is a line. A line end inside one is not ours, and is never shown as one.
    """

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class ConfigError(PolysemeError):
    """A setting that does not exist, or a value that does not fit it."""

    exit_code = 2


class InputError(PolysemeError):
    """A text that cannot be found or is not what it was said to be."""

    exit_code = 66


class CorpusError(PolysemeError):
    """A corpus folder that is unfinished, damaged, or made in another way than asked."""

    exit_code = 65


class ModelError(PolysemeError):
    """A model folder that is unfinished, damaged, or does not fit what it is used for."""

    exit_code = 65


class VectorsError(PolysemeError):
    """A folder of vectors that is unfinished, damaged, or made in another way than asked."""

    exit_code = 65


class UseIndexError(PolysemeError):
    """An index of uses that is unfinished, damaged, or of another model or corpus."""

    exit_code = 65


class HubError(PolysemeError):
    """A hub that cannot be reached or refuses, or a repository that is not what was expected."""

    exit_code = 69


class MissingExtraError(PolysemeError):
    """An optional package is needed and not installed."""

    @classmethod
    def of(cls, package: str, *, extra: str | None = None, purpose: str) -> "MissingExtraError":
        """The error for one package, which is installed by itself unless an extra brings it.

        Not `__init__`: errors travel between processes as text.
        """
        return cls(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: {pip_command(extra) if extra else f'pip install {package}'}"
        )


def pip_command(extra: str) -> str:
    """What installs an extra of this very installation."""
    return f"pip install {shlex.quote(f'{installed_from()}[{extra}]')}"


_EXTRAS = {
    "torch": "torch",
    "safetensors": "torch",
    "threadpoolctl": "torch",
    "sklearn": "senses",
    "scipy": "senses",
    "jinja2": "senses",
    "lark": "senses",
    "simplemma": "senses",
    "openpyxl": "senses",
    "jieba": "zh",
    "opencc": "zh",
    "lxml": "documents",
    "h5py": "torch",
    "sacrebleu": "torch",
    "transformers": "hf",
    "huggingface_hub": "hf",
    "obstore": "cluster",
    "ray": "cluster",
    "starlette": "explorer",
    "uvicorn": "explorer",
    "httptools": "serve",
    "orjson": "serve",
    "prometheus_client": "serve",
    "pandas": None,
    "matplotlib": None,
    "tensorboard": None,
    "anywidget": None,
    "onnx": None,
    "onnxscript": None,
}
"""Optional packages, and the extra that brings each; None: installed by itself."""


@contextlib.contextmanager
def extra_needed_for(purpose: str) -> Iterator[None]:
    """Say what to install where an import finds no PyTorch, or another package of `_EXTRAS`."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise MissingExtraError.of(package, extra=_EXTRAS[package], purpose=purpose) from error


def installed_from() -> str:
    """What pip was given when Polyseme was installed: its name, or the folder of its sources."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        source = json.loads(distribution("polyseme").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "polyseme"
    address = urlsplit(source.get("url", ""))
    return (
        unquote(address.path) if address.scheme == "file" and "dir_info" in source else "polyseme"
    )


class ExecutorError(PolysemeError):
    """The work over shards could not be finished; what was finished stays."""

    exit_code = 75


class StorageError(PolysemeError):
    """The disk is full or failed. Nothing half-written is left under a final name."""

    exit_code = 74


class AccessError(PolysemeError):
    """A file or folder that this user may not read or write."""

    exit_code = 77


class OutOfMemoryError(PolysemeError):
    """The machine has less memory than the work asked for."""

    exit_code = 71


class InternalError(PolysemeError):
    """A fault of the program itself."""

    exit_code = 70


class TrainingError(PolysemeError):
    """Training cannot go on as it is; what was saved before stays."""

    exit_code = 70


class TrainingStoppedError(TrainingError):
    """A signal asked a run to stop, and it did, with everything saved."""

    exit_code = 143
