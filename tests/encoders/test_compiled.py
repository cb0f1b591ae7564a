"""Building and finding the kernel; what it computes is tested with the recurrence."""

import ctypes
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from required import needs

from polyseme.encoders import compiled
from polyseme.errors import PolysemeError

needs_compiler = needs(any(map(shutil.which, ("cc", "gcc", "clang"))), "a C compiler")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the first of the sources, in a folder where nothing was built."""
    copies = tuple(Path(shutil.copy(source, tmp_path)) for source in compiled.SOURCES)
    monkeypatch.setattr(compiled, "SOURCES", copies)
    return copies[0]


@pytest.mark.usefixtures("source")
def test_a_library_that_was_not_built_is_not_there() -> None:
    assert compiled.load.__wrapped__() is None


@needs_compiler
def test_a_built_library_is_found(source: Path) -> None:
    path = compiled.build()
    assert sorted(source.parent.iterdir()) == sorted([*compiled.SOURCES, path])
    library = compiled.load.__wrapped__()
    assert library is not None
    assert library.forward_bfloat16
    assert library.backward_float32


@needs_compiler
@pytest.mark.usefixtures("source")
def test_a_changed_source_leaves_the_old_library_aside() -> None:
    built = compiled.build()
    for changed in compiled.SOURCES:
        before = changed.read_bytes()
        changed.write_bytes(before + b"/* changed */\n")
        assert compiled.load.__wrapped__() is None
        changed.write_bytes(before)
        assert compiled.library_path() == built


def test_another_processor_looks_for_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    here = compiled.library_path()
    monkeypatch.setattr(compiled, "_processor", lambda: "flags: fewer")
    assert compiled.library_path() != here


def test_a_damaged_library_is_not_used_and_that_is_said(
    source: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiled.library_path().write_bytes(b"not a library")
    with caplog.at_level(logging.WARNING):
        assert compiled.load.__wrapped__() is None
    assert str(compiled.library_path()) in caplog.text


@pytest.mark.usefixtures("source")
def test_without_a_compiler_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert compiled.main() == 1
    said = capsys.readouterr().err
    assert "No C compiler was found (looked for cc, gcc, clang)" in said
    assert "install one" in said


@needs_compiler
def test_a_source_that_does_not_compile_leaves_nothing_behind(source: Path) -> None:
    source.write_text("this is not C\n", encoding="utf-8")
    with pytest.raises(PolysemeError, match="could not compile"):
        compiled.build()
    assert sorted(source.parent.iterdir()) == sorted(compiled.SOURCES)


def test_importing_loads_and_builds_nothing() -> None:
    code = (
        "import polyseme.encoders.recurrence\n"
        "from polyseme.encoders import compiled\n"
        "print(compiled.load.cache_info().currsize)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert result.stdout.strip() == "0"


@needs_compiler
@pytest.mark.usefixtures("source")
def test_loading_leaves_the_arithmetic_of_the_process_alone() -> None:
    """Libraries linked for fast arithmetic turn numbers below 1e-38 into zeros everywhere."""
    ctypes.CDLL(str(compiled.build()))
    smallest = torch.tensor([1e-40]) * 0.5
    assert smallest.item() > 0
