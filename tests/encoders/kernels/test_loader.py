"""One library a process, the best that was built; nothing goes to it but what it takes."""

import ctypes
import functools
import re
import shutil
from pathlib import Path

import pytest

from encoders.kernel import Kernels
from polyseme.encoders import cell
from polyseme.encoders.kernels import build, loader
from polyseme.encoders.kernels.build import NEEDS, InstructionSet, instruction_sets
from polyseme.encoders.kernels.loader import SIGNATURES, GatesShape, Kernel, StepShape, StridedArray

SOURCES = Path(build.__file__).parent


def test_every_function_that_is_exported_is_declared() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.c")))
    named = set(re.findall(r"^PUBLIC \w+ (\w+)\(", text, re.MULTILINE))
    by_macro = set(re.findall(r"^(?:FORWARD|BACKWARD)\((\w+),", text, re.MULTILINE))
    pairs = re.findall(r"^SOFTMAX\((\w+), (\w+),", text, re.MULTILINE)
    assert named | by_macro | {name for pair in pairs for name in pair} == set(SIGNATURES)


def test_no_function_is_called_that_is_not_declared() -> None:
    """Asked for by index, ctypes gives a new function that takes anything."""
    for path in Path(cell.__file__).parent.rglob("*.py"):
        assert not re.search(r"\b(library|kernel)\[", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    "arguments",
    [(1, 2), (ctypes.byref(StepShape()), (StridedArray * 7)()), (ctypes.byref(GatesShape()), b"")],
    ids=["numbers", "the other structure", "bytes"],
)
def test_a_wrong_argument_is_refused_and_not_taken_for_an_address(
    library: Kernel, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(ctypes.ArgumentError):
        library.forward_float32(*arguments)


@pytest.fixture
def all_built(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[InstructionSet]:
    """As from a wheel: a library for every instruction set, here for those of this processor."""
    copies = tuple(Path(shutil.copy(source, tmp_path)) for source in build.SOURCES)
    monkeypatch.setattr(build, "SOURCES", copies)
    (tmp_path / "built").mkdir(mode=0o755)
    for name in instruction_sets():
        library = Path(kernels(name)._name)
        for each in (library, library.with_name(f"{library.name}.sha256")):
            shutil.copy(each, tmp_path / "built")
    return instruction_sets()


def test_the_processor_decides_which_library_is_loaded(
    all_built: list[InstructionSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in all_built:
        flags = {"flags": " ".join(("sse2", *NEEDS[name]))}
        monkeypatch.setattr(build, "_facts", lambda told=flags: told)
        kernel = loader.load.__wrapped__()
        assert kernel is not None
        assert kernel.instruction_set == name


def test_where_the_best_was_not_built_the_next_is_loaded(all_built: list[InstructionSet]) -> None:
    best, *others = all_built
    build.library_path(best).unlink()
    kernel = loader.load.__wrapped__()
    assert (kernel and kernel.instruction_set) == (others[0] if others else None)


def test_a_process_keeps_to_one_library(
    all_built: list[InstructionSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is built or removed meanwhile."""
    monkeypatch.setattr(loader, "load", functools.cache(loader.load.__wrapped__))
    before = loader.load()
    for name in all_built:
        build.library_path(name).unlink()
    assert loader.load() is before is not None


def test_panels_are_as_wide_as_vectors(library: Kernel) -> None:
    wide = {"baseline": None, "avx2": 8, "avx512": 16, "amx": 16}[library.instruction_set]
    assert hasattr(library, "step_float32") == (wide is not None)
    if wide is not None:
        assert library.panel_cells() == wide
