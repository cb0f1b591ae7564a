"""Nothing goes to the compiled functions but what they take."""

import ctypes
import re
from pathlib import Path

import pytest

from polyseme.encoders import compiled
from polyseme.encoders.compiled import Kernel
from polyseme.encoders.signatures import SIGNATURES, GatesShape, StepShape, StridedArray

SOURCES = Path(compiled.__file__).parent


def test_every_function_that_is_exported_is_declared() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.c")))
    named = set(re.findall(r"^PUBLIC \w+ (\w+)\(", text, re.MULTILINE))
    by_macro = set(re.findall(r"^(?:FORWARD|BACKWARD)\((\w+),", text, re.MULTILINE))
    assert named | by_macro == set(SIGNATURES)


def test_no_function_is_called_that_is_not_declared() -> None:
    """Asked for by index, ctypes gives a new function that takes anything."""
    for path in SOURCES.glob("*.py"):
        assert not re.search(r"\b(library|kernel)\[", path.read_text(encoding="utf-8")), path


def test_a_loaded_library_has_its_functions_declared(library: Kernel) -> None:
    there = [name for name in SIGNATURES if hasattr(library, name)]
    assert {"forward_float32", "backward_bfloat16"} <= set(there)
    for name in there:
        result, arguments = SIGNATURES[name]
        function = getattr(library, name)
        assert (function.restype, list(function.argtypes)) == (result, arguments)


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
