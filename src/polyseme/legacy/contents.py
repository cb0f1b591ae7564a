"""Where the numbers lie in an untrusted file, and how they are fetched once that is known.

    in   specs     told by the sandboxed child: name, shape, type and offset of each array
    out  arrays    float32, read by us from those offsets

The child sends no numbers, only this table, and the table is believed in nothing: every array must
lie inside the file, none may overlap another, and all together may not be larger than the file.
Hence nothing that a file claims can make us allocate more than it holds.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SIZES = {"<f2": 2, "<f4": 4, "<f8": 8}
"""Bytes of a number of each type that is read; all of them become float32."""
MAX_ARRAYS = 10_000
MAX_NAME = 1_000
MAX_RANK = 8
_MOST = 1 << 62  # beyond any file; keeps sums of what a liar tells within 64 bits


class RefusedError(Exception):
    """What a file holds is not what weights are made of; the text says what it was."""


@dataclass(frozen=True)
class ArraySpec:
    """Where one array lies in a file. Strides are in numbers, not bytes; `offset` is in bytes."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    offset: int

    @property
    def numbers(self) -> int:
        """How many numbers the array has."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """From its first to its last byte in the file."""
        steps = zip(self.shape, self.strides, strict=True)
        return SIZES[self.dtype] * (1 + sum((size - 1) * stride for size, stride in steps))

    def to_json(self) -> dict[str, Any]:
        """As the child sends it."""
        return {**vars(self)}


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose rows follow one another without gaps."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def specs_from_json(told: Any) -> list[ArraySpec]:
    """Specs as sent by a child, who may lie about everything, types of values included."""
    if not isinstance(told, list) or len(told) > MAX_ARRAYS:
        raise RefusedError(f"it should hold a list of at most {MAX_ARRAYS:,} arrays")
    return [_spec_from_json(one) for one in told]


def _spec_from_json(told: Any) -> ArraySpec:
    fields = ArraySpec.__dataclass_fields__.keys()
    if not isinstance(told, dict) or told.keys() != fields:
        raise RefusedError("an array is described in an unknown way")
    name, dtype, offset = told["name"], told["dtype"], told["offset"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise RefusedError("an array has no name, a very long one or an unprintable one")
    if not isinstance(dtype, str) or dtype not in SIZES:
        raise RefusedError(f"{name} holds other numbers than floats")
    numbers = [told["shape"], told["strides"], [offset]]
    if not all(isinstance(some, list) and len(some) <= MAX_RANK for some in numbers):
        raise RefusedError(f"{name} has more than {MAX_RANK} axes")
    shape, strides, _ = numbers
    if len(shape) != len(strides) or not all(_is_size(one) for some in numbers for one in some):
        raise RefusedError(f"{name} has an impossible shape")
    if min(shape, default=1) < 1:
        raise RefusedError(f"{name} is empty")
    return ArraySpec(name, tuple(shape), tuple(strides), dtype, offset)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def check_specs(specs: Sequence[ArraySpec], file_bytes: int) -> None:
    """Refuse arrays outside the file, over one another, or larger than the file can be."""
    if len({spec.name for spec in specs}) < len(specs):
        raise RefusedError("two arrays have the same name")
    end, last = 0, "the start of the file"
    for spec in sorted(specs, key=lambda spec: spec.offset):
        if spec.offset < end:
            raise RefusedError(f"{spec.name} lies over {last}")
        end, last = spec.offset + spec.num_bytes, spec.name
        if end > file_bytes:
            raise RefusedError(f"{spec.name} {list(spec.shape)} is larger than the file")
        if spec.numbers * SIZES[spec.dtype] > spec.num_bytes:
            raise RefusedError(f"{spec.name} repeats its own numbers")


def fetch(descriptor: int, specs: Sequence[ArraySpec]) -> dict[str, Floats]:
    """The arrays with these checked specs; each is allocated only when it is read."""
    return {spec.name: _fetch_one(descriptor, spec) for spec in specs}


def _fetch_one(descriptor: int, spec: ArraySpec) -> Floats:
    raw = bytearray(spec.num_bytes)
    view, read = memoryview(raw), 0
    while read < len(raw):
        more = os.preadv(descriptor, [view[read : read + (1 << 26)]], spec.offset + read)
        if not more:
            raise RefusedError(f"{spec.name} is cut off")
        read += more
    strides = [stride * SIZES[spec.dtype] for stride in spec.strides]
    # numpy itself checks once more that the strides stay within the buffer.
    array: NDArray[Any] = np.ndarray(spec.shape, spec.dtype, buffer=raw, strides=strides)
    with np.errstate(over="ignore"):  # a double too large for a float becomes infinite: refused
        floats = np.ascontiguousarray(array, dtype=np.float32).reshape(spec.shape)
    if not np.isfinite(floats).all():
        raise RefusedError(f"{spec.name} holds values that are not finite numbers")
    return floats
