"""How much of a file is believed: every limit that several packages share, and bounded reading.

    in   a path, or text, that anyone may have written
    out  its content, or a `LimitError` before memory is taken

Files lie about their size: they may be sparse, grow while they are read, or be no files at all.
So one is opened first, then asked what it is, and at most a byte more than the limit is read.
SECURITY.md lists all limits; a test holds that table against the numbers here.
"""

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

JSON_BYTES = 64 << 20
"""Manifests, words.json, receipts, state.json. A corpus of 400,000 files has 60 MB."""
JSON_PARTS = 1 << 20
"""Lists and tables in one of those: each takes a hundred bytes of memory, and three of the file."""
TOML_BYTES = 2 << 20
"""Settings. The longest honest ones name 100,000 words to keep."""
TOML_PARTS = 16
"""Parts of a dotted key, as in a.b.c: memory grows with their square. Ours have up to six."""
LONGEST_LINE = 8 << 20
"""A longer line or Parquet cell is quarantined: no sentence is that long."""
LARGEST_RATIO = 250
"""What comes out of a packed file, as a multiple of it. Text packs 3 to 20 times, zeros 1,000."""
LOG_LINES = 2_000_000
"""Lines of a run log that are drawn: a line a step."""
FILE_BYTES = 1 << 30
"""Any other file of a model or a task, before it is hashed."""
WEIGHTS_BYTES = 64 << 30
"""A file of weights. The largest published ELMo has 0.4 GB."""

# One part after another, each behind a dot. Possessive, so that no text makes it go back.
_PART = r"""\.[ \t]*+(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_DOTTED = re.compile(f"(?:{_PART}){{{TOML_PARTS}}}")


class LimitError(ValueError):
    """A file that is larger, deeper or of another kind than what is read. Its text is the reason.

    A ValueError, as what a parser raises: whoever reads a file turns both into an error that says
    what the file is for.
    """


def open_regular(path: Path) -> IO[bytes]:
    """A file to be read in parts; not a pipe, which could hold us up for good, nor a device."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise LimitError(f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path, limit: int) -> bytes:
    """All of a small file."""
    with open_regular(path) as stream:
        check_size(path.name, os.fstat(stream.fileno()).st_size, limit)
        content = stream.read(limit + 1)
    check_size(path.name, len(content), limit)
    return content


def read_text(path: Path, limit: int) -> str:
    """All of a small UTF-8 file, line ends as they are."""
    return read_bytes(path, limit).decode("utf-8")


def read_json(path: Path, limit: int = JSON_BYTES) -> Any:
    """The value in a JSON file."""
    return parse_json(read_text(path, limit))


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a log, each with its end; one that is too long comes in parts."""
    with open_regular(path) as stream:
        while line := stream.readline(LONGEST_LINE):
            yield line


def parse_json(text: str) -> Any:
    """The value that JSON stands for; not one that is nested or split up beyond use."""
    parts = text.count("{") + text.count("[")
    if parts > JSON_PARTS:
        raise LimitError(f"it has {parts:,} lists and tables, more than {JSON_PARTS:,}")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise LimitError("it is nested too deeply") from error


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text."""
    check_size("it", len(text.encode("utf-8", "surrogatepass")), TOML_BYTES)
    if _DOTTED.search(text):
        raise LimitError(f"a dotted key has more than {TOML_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise LimitError("it is nested too deeply") from error


def check_size(name: str, size: int, limit: int) -> None:
    """Refuse what is larger than the limit."""
    if size > limit:
        raise LimitError(f"{name} has {size:,} bytes or more; at most {limit:,} are read")
