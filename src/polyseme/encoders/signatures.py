"""What the compiled functions take: the structures of `gates.h` and `steps.h`, and a table.

Undeclared, ctypes would pass whatever it is given, and a wrong argument would be a wrong address.
"""

import ctypes
from typing import Any


class GatesShape(ctypes.Structure):
    """`shape` of `gates.c`."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("stacks", "rows", "cells", "threads")),
        ("clip", ctypes.c_float),
    ]


class StepShape(ctypes.Structure):
    """`step` of `steps.h`."""

    _names = ("stacks", "rows", "most_rows", "cells", "read", "width", "threads")
    _fields_ = [*((name, ctypes.c_int64) for name in _names), ("clip", ctypes.c_float)]


class StridedArray(ctypes.Structure):
    """`array` of `gates.h`: where it begins and how far apart its stacks lie."""

    _fields_ = [("start", ctypes.c_void_p), ("stride", ctypes.c_int64)]


_ARRAYS = ctypes.POINTER(StridedArray)
_GATES = (None, [ctypes.POINTER(GatesShape), _ARRAYS])
_STEP = (None, [ctypes.POINTER(StepShape), _ARRAYS])
_PACK = (None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)])
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "forward_float32": _GATES,
    "forward_bfloat16": _GATES,
    "backward_float32": _GATES,
    "backward_bfloat16": _GATES,
    "step_float32": _STEP,  # this and all below only where the processor has what they need
    "step_bfloat16": _STEP,
    "pack_float32": _PACK,
    "pack_bfloat16": _PACK,
    "may_use_tiles": (ctypes.c_int, []),
}
"""Every function that is called: what it returns, and what it takes."""


def declare(library: ctypes.CDLL) -> None:
    """Give the functions that a library has their signatures.

    They hold for attributes; asked for by index, ctypes gives a new, undeclared function.
    """
    for name, (result, arguments) in SIGNATURES.items():
        if hasattr(library, name):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
