"""The compiled library: which one this process uses, and what its functions take.

Undeclared, ctypes would pass whatever it is given, and a wrong argument would be a wrong address.
So the structures of `gates.c`, `softmax.c`, `few_rows.c`, `louvain.c` and `steps.h` are repeated
here, and every function is declared.
"""

import ctypes
import functools
import logging
import os
from pathlib import Path
from typing import Any

from polyseme.encoders.kernels import build
from polyseme.encoders.kernels.build import InstructionSet, instruction_sets


class GatesShape(ctypes.Structure):
    """`shape` of `gates.c`."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("stacks", "rows", "hidden_size", "threads")),
        ("clip", ctypes.c_float),
    ]


class StepShape(ctypes.Structure):
    """`step` of `steps.h`."""

    _names = ("stacks", "rows", "max_rows", "hidden_size", "input_size", "proj_size", "threads")
    _fields_ = [*((name, ctypes.c_int64) for name in _names), ("clip", ctypes.c_float)]


class RowsShape(ctypes.Structure):
    """`few_rows` of `few_rows.c`."""

    _names = ("stacks", "steps", "hidden_size", "proj_size", "threads")
    _fields_ = [
        *((name, ctypes.c_int64) for name in _names),
        *((name, ctypes.c_float) for name in ("cell_clip", "output_clip")),
    ]


class SoftmaxShape(ctypes.Structure):
    """`table` of `softmax.c`."""

    _fields_ = [(name, ctypes.c_int64) for name in ("rows", "columns", "groups", "threads")]


class GraphShape(ctypes.Structure):
    """`graph_shape` of `louvain.c`."""

    _fields_ = [("nodes", ctypes.c_int64), ("least_gain", ctypes.c_double)]


class StridedArray(ctypes.Structure):
    """`array` of `gates.h`: where it begins and how far apart its stacks lie."""

    _fields_ = [("start", ctypes.c_void_p), ("stride", ctypes.c_int64)]


_ARRAYS = ctypes.POINTER(StridedArray)
_GATES = (None, [ctypes.POINTER(GatesShape), _ARRAYS])
_SOFTMAX = (None, [ctypes.POINTER(SoftmaxShape), _ARRAYS])
_STEP = (None, [ctypes.POINTER(StepShape), _ARRAYS])
_PACK = (None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)])
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "forward_float32": _GATES,
    "forward_bfloat16": _GATES,
    "backward_float32": _GATES,
    "backward_bfloat16": _GATES,
    "softmax_float32": _SOFTMAX,
    "softmax_bfloat16": _SOFTMAX,
    "sum_softmax_float32": _SOFTMAX,
    "sum_softmax_bfloat16": _SOFTMAX,
    "move_nodes": (None, [ctypes.POINTER(GraphShape), _ARRAYS]),
    "step_float32": _STEP,  # this and all below only where the instruction set has what they need
    "step_bfloat16": _STEP,
    "few_rows_float16": (None, [ctypes.POINTER(RowsShape), _ARRAYS]),
    "pack_float32": _PACK,
    "pack_bfloat16": _PACK,
    "panel_cells": (ctypes.c_int, []),
    "may_use_tiles": (ctypes.c_int, []),
}
"""Every function that is called: what it returns, and what it takes."""


class Kernel(ctypes.CDLL):
    """A library, its functions declared, what it was compiled for, and the SHA-256 of its file."""

    def __init__(self, path: Path, digest: str, instruction_set: InstructionSet) -> None:
        super().__init__(str(path))
        self.digest = digest
        self.instruction_set = instruction_set
        # Declarations hold for attributes; asked for by index, ctypes gives an undeclared function.
        for name, (result, arguments) in SIGNATURES.items():
            if hasattr(self, name):
                function = getattr(self, name)
                function.restype, function.argtypes = result, arguments

    def can_step(self, precision: str) -> bool:
        """Whether whole steps can be computed in this precision, on this processor and system."""
        if not hasattr(self, f"step_{precision}"):
            return False
        return precision != "bfloat16" or bool(self.may_use_tiles())

    def describe(self, precision: str) -> str:
        """What decides last bits: the instruction set, how much is done by it, and the build."""
        what = "steps" if self.can_step(precision) else "gates"
        return f"{self.instruction_set} {what}, {self.digest[:16]}"


@functools.cache
def load() -> Kernel | None:
    """The best library for this processor of those that were built, or None.

    A process asks once and keeps the answer, so that all it does is done by one of them.
    """
    paths = {name: build.library_path(name) for name in instruction_sets()}
    found = next((name for name, path in paths.items() if os.path.lexists(path)), None)
    if found is None:
        return None
    try:
        return Kernel(paths[found], build.check(paths[found]), found)
    except (OSError, build.UntrustedLibraryError) as error:
        logging.getLogger(__name__).warning(
            "The compiled kernel %s is not used: %s. Build it again (%s), or remove it; until then "
            "all works without it, only slower.",
            paths[found],
            error,
            build.COMMAND,
        )
        return None
