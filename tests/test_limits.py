"""Small files are read up to a limit, and refused beyond it before memory is taken."""

import os
import time
import tracemalloc
from pathlib import Path

import pytest
from slack import allowed

from polyseme.config import overlay, read_toml
from polyseme.errors import ConfigError
from polyseme.limits import (
    TOML_BYTES,
    TOML_PARTS,
    LimitError,
    parse_json,
    parse_toml,
    read_bytes,
    read_json,
)


def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    assert read_bytes(tmp_path / "file", 100) == b"x" * 100
    with pytest.raises(LimitError, match="100 bytes or more; at most 99"):
        read_bytes(tmp_path / "file", 99)


@pytest.mark.skipif(os.name == "nt", reason="no pipes")
def test_neither_a_pipe_nor_a_device_nor_a_folder_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(LimitError, match="not a regular file"):
            read_bytes(path, 100)


def test_a_file_that_is_longer_than_it_says_is_cut_off(tmp_path: Path) -> None:
    # Files of /proc say that they have no bytes.
    with pytest.raises(LimitError, match="at most 10"):
        read_bytes(Path("/proc/self/status"), 10)


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 50_000) + " = 1",
        "[" + ".".join("a" * 50_000) + "]",
        "x = { " + " . ".join(['"a"'] * 50_000) + " = 1 }",
        ".".join(["'a'"] * 17) + " = 1",
        "x = " + "[" * 100_000,
        "x = " + "9" * 5_000,
        "x = 1 # " + "x" * TOML_BYTES,
    ],
)
def test_toml_that_would_take_gigabytes_is_refused_at_once(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.toml").write_text(text, encoding="utf-8")
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(ConfigError, match="is not valid TOML"):
        read_toml(tmp_path / "settings.toml")
    assert time.process_time() - started < allowed(2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20


def test_toml_within_the_limits_is_read() -> None:
    key = ".".join("a" * TOML_PARTS)
    assert parse_toml(f"{key} = 1")
    assert parse_toml('x = "a.b.c ..... 1.2.3"\ny = [1.5, 2.5, 3.5]')["y"] == [1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    "assignment",
    [".".join("a" * 50_000) + "=1", "a={" + ".".join("a" * 50_000) + "=1}", "a=" + "[" * 100_000],
)
def test_set_has_the_same_limits(assignment: str) -> None:
    with pytest.raises(ConfigError):
        overlay({}, assignment)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5_000, f"[{'[],' * (1 << 20)}[]]"])
def test_json_beyond_use_is_a_value_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|digits|lists and tables"):
        parse_json(text)
    (tmp_path / "file").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"nested|digits|lists and tables"):
        read_json(tmp_path / "file")
