"""What the tests of readers share: a file written by hand, and what came of it."""

from pathlib import Path
from typing import Any

from polyseme.config import Settings, build
from polyseme.tasks.readers import Loaded, ReaderConfig, load_examples


class _Holder(Settings):
    reader: ReaderConfig


def reader(kind: str, **values: Any) -> ReaderConfig:
    """Settings as from a file: picked by their kind."""
    return build(_Holder, {"reader": {"kind": kind, **values}}).reader


def load(folder: Path, data: str | bytes, config: ReaderConfig, name: str = "file") -> Loaded:
    """The examples of a file with this content."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return load_examples(path, config)
