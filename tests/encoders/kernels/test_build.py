"""Building and finding the kernel; what it computes is tested with the recurrence.

What the processor has decides what is compiled and loaded.
"""

import ctypes
import logging
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from required import leave_out_if

from polyseme.encoders.kernels import build, loader
from polyseme.encoders.kernels.build import NEEDS, instruction_sets
from polyseme.errors import PolysemeError
from polyseme.storage.files import sha256_of

needs_compiler = pytest.mark.usefixtures("compiler")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the first of the sources, in a folder where nothing was built."""
    copies = tuple(Path(shutil.copy(source, tmp_path)) for source in build.SOURCES)
    monkeypatch.setattr(build, "SOURCES", copies)
    return copies[0]


@needs_compiler
def test_a_built_library_is_found(source: Path) -> None:
    path = build.build()
    assert sorted(source.parent.iterdir()) == sorted([*build.SOURCES, path.parent])
    assert sorted(path.parent.iterdir()) == [path, path.with_name(f"{path.name}.sha256")]
    library = loader.load.__wrapped__()
    assert library is not None
    assert library.forward_bfloat16
    assert library.backward_float32


@needs_compiler
@pytest.mark.usefixtures("source")
def test_a_changed_source_leaves_the_old_library_aside() -> None:
    built = build.build()
    assert {source.suffix for source in build.SOURCES} == {".c", ".h"}
    for changed in build.SOURCES:
        before = changed.read_bytes()
        changed.write_bytes(before + b"/* changed */\n")
        assert loader.load.__wrapped__() is None
        changed.write_bytes(before)
        assert build.library_path(instruction_sets()[0]) == built


@needs_compiler
@pytest.mark.usefixtures("source")
def test_a_compiler_older_than_the_processor_builds_what_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(build, "instruction_sets", lambda: ["amx", "baseline"])
    monkeypatch.setitem(NEEDS, "amx", ("no_such_instructions",))
    assert build.build() == build.library_path("baseline")


@pytest.mark.usefixtures("source")
def test_what_is_no_library_is_not_used_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    path = build.library_path(instruction_sets()[0])
    path.parent.mkdir(mode=0o755)
    path.write_bytes(b"not a library")
    path.with_name(f"{path.name}.sha256").write_text(sha256_of(path))
    with caplog.at_level(logging.WARNING):
        assert loader.load.__wrapped__() is None
    assert str(path) in caplog.text


def test_every_source_that_is_included_is_hashed() -> None:
    """A header that is not among them could change and leave an old library in use."""
    names = {source.name for source in build.SOURCES}
    text = "".join(source.read_text(encoding="utf-8") for source in build.SOURCES)
    assert set(re.findall(r'#include "(.+)"', text)) == {"gates.h", "steps.h"} <= names
    assert {path.name for path in Path(build.__file__).parent.glob("*.[ch]")} == names


@needs_compiler
def test_two_builds_are_the_same_file_byte_for_byte(tmp_path: Path) -> None:
    """So that nodes which build it for themselves, with one compiler, have the same kernel."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    one, other = map(build.build, folders)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.usefixtures("source")
def test_without_a_compiler_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert build.main() == 1
    said = capsys.readouterr().err
    assert "No C compiler was found (looked for cc, gcc, clang)" in said
    assert "install one" in said


@needs_compiler
def test_a_source_that_does_not_compile_leaves_nothing_behind(source: Path) -> None:
    source.write_text("this is not C\n", encoding="utf-8")
    with pytest.raises(PolysemeError, match="could not compile"):
        build.build()
    built = build.library_path(instruction_sets()[0]).parent
    assert sorted(source.parent.iterdir()) == sorted([*build.SOURCES, built])
    assert list(built.iterdir()) == []


def test_importing_loads_and_builds_nothing() -> None:
    code = (
        "import polyseme.encoders.cell\n"
        "from polyseme.encoders.kernels import loader\n"
        "print(loader.load.cache_info().currsize)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert result.stdout.strip() == "0"


@needs_compiler
@pytest.mark.usefixtures("source")
def test_loading_leaves_the_arithmetic_of_the_process_alone() -> None:
    """Libraries linked for fast arithmetic turn numbers below 1e-38 into zeros everywhere."""
    ctypes.CDLL(str(build.build()))
    smallest = torch.tensor([1e-40]) * 0.5
    assert smallest.item() > 0


def test_without_the_kernel_no_process_has_it(request: pytest.FixtureRequest) -> None:
    """What `--without-kernel` promises: of this process, and of those that it starts."""
    leave_out_if(not request.config.getoption("without_kernel"), "no --without-kernel")
    code = "from polyseme.encoders.kernels import loader; print(loader.__file__, loader.load())"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert "without-kernel-" in found.stdout
    assert found.stdout.strip().endswith(" None")
    assert loader.load() is None


LAPTOP = "fpu sse2 avx f16c fma avx2 bmi2"
SERVER = f"{LAPTOP} avx512f avx512dq avx512cd avx512bw avx512vl"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu sse2", ["baseline"]),
        ("fpu sse2 avx avx2", ["baseline"]),  # some virtual machines hide FMA
        (LAPTOP, ["avx2", "baseline"]),
        (f"{LAPTOP} avx512f", ["avx2", "baseline"]),  # Xeon Phi: not the rest of it
        (SERVER, ["avx512", "avx2", "baseline"]),
        (f"{SERVER} avx512_bf16 amx_bf16 amx_tile", ["amx", "avx512", "avx2", "baseline"]),
    ],
)
def test_only_what_the_processor_has_and_the_best_first(
    flags: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_facts", lambda: {"flags": flags})
    assert instruction_sets() == expected


def test_arm_has_its_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_facts", lambda: {"Features": "fp asimd bf16 sve"})
    assert instruction_sets() == ["baseline"]


@pytest.mark.parametrize(
    ("capability", "best"), [("AVX512", "avx512"), ("AVX2", "avx2"), ("DEFAULT", "baseline")]
)
def test_where_the_system_does_not_tell_torch_does(
    capability: str, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_facts", dict)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert instruction_sets()[0] == best


def test_a_better_instruction_set_has_all_of_a_lesser() -> None:
    needed = [set(needs) for needs in NEEDS.values()]
    assert all(more > less for more, less in pairwise(needed))
