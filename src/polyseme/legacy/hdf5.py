"""HDF5 weights: which arrays a file holds, and writing such a file.

    in   an open HDF5 file        read only inside the sandbox, see `child.py`
    out  a table of its arrays    name, shape, type and offset of each

HDF5 can name other files, run filters and point anywhere. Weights need none of that, so all of it
is refused: groups and datasets by hard links only, each met once; contiguous float32 or float64,
unfiltered, inside this file. The library is asked about structure only; values it never touches.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from polyseme.errors import MissingExtraError
from polyseme.legacy.contents import (
    MAX_ARRAYS,
    MAX_NAME,
    ArraySpec,
    Floats,
    RefusedError,
    row_strides,
)
from polyseme.storage.files import scratch_for

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped, unused-ignore]

MAX_DEPTH = 16
_NO_VALUES = 2  # H5S_NULL


def find_arrays(stream: BinaryIO, size: int) -> list[ArraySpec]:
    """The arrays of an HDF5 file of `size` bytes."""
    import h5py

    try:
        with h5py.File(stream, "r") as file:
            if file.userblock_size:
                raise RefusedError("it begins with a block of foreign bytes")
            return _Audit(size).walk(file.id)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, UnicodeError) as error:
        raise RefusedError(f"HDF5 cannot read it: {error}") from error


class _Audit:
    """One walk over a file, refusing whatever weights do not need."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._specs: list[ArraySpec] = []
        self._seen: set[int] = set()

    def walk(self, root: "h5py.h5g.GroupID") -> list[ArraySpec]:
        """Every array under this group."""
        from h5py import h5o

        self._seen.add(h5o.get_info(root).addr)  # a link back to the root is a circle too
        self._enter(root, "", 0)
        return self._specs

    def _enter(self, group: "h5py.h5g.GroupID", prefix: str, depth: int) -> None:
        from h5py import h5l, h5o

        if depth > MAX_DEPTH or len(self._seen) + group.get_num_objs() > MAX_ARRAYS:
            raise RefusedError(f"more than {MAX_DEPTH} levels or {MAX_ARRAYS:,} objects")
        for raw in list(group):
            name = prefix + raw.decode("utf-8")
            if len(name) > MAX_NAME or raw in (b"", b".", b"..") or b"/" in raw:
                raise RefusedError("an object has an impossible or very long name")
            if group.links.get_info(raw).type != h5l.TYPE_HARD:
                raise RefusedError(f"{name!r} is a soft, external or unknown link")
            told = h5o.get_info(group, raw)
            if told.addr in self._seen:
                raise RefusedError(f"{name!r} is an object met before under another name")
            self._seen.add(told.addr)
            self._visit(h5o.open(group, raw), name, depth)

    def _visit(self, found: Any, name: str, depth: int) -> None:
        from h5py import h5d, h5g

        if isinstance(found, h5g.GroupID):
            self._enter(found, name + "/", depth + 1)
        elif isinstance(found, h5d.DatasetID):
            self._specs.append(self._spec(found, name))
        else:
            raise RefusedError(f"{name!r} is neither a group nor an array")

    def _spec(self, found: "h5py.h5d.DatasetID", name: str) -> ArraySpec:
        from h5py import h5d, h5t

        plan, kind = found.get_create_plist(), found.get_type()
        if plan.get_external_count():
            raise RefusedError(f"{name!r} keeps its numbers in another file")
        if plan.get_layout() != h5d.CONTIGUOUS or plan.get_nfilters():
            raise RefusedError(f"{name!r} is stored in chunks, filtered, inline or virtual")
        floats = {"<f4": h5t.IEEE_F32LE, "<f8": h5t.IEEE_F64LE}
        dtype = next((code for code, known in floats.items() if kind.equal(known)), None)
        if dtype is None:
            raise RefusedError(f"{name!r} holds other numbers than little-endian floats")
        if found.get_space().get_simple_extent_type() == _NO_VALUES:
            raise RefusedError(f"{name!r} holds no values")
        shape, offset = tuple(int(size) for size in found.shape), found.get_offset()
        if offset is None:
            raise RefusedError(f"{name!r} was never written")
        spec = ArraySpec(name, shape, row_strides(shape), dtype, int(offset))
        if found.get_storage_size() != spec.num_bytes or offset + spec.num_bytes > self._size:
            raise RefusedError(f"{name!r} {list(shape)} is larger than the file")
        return spec


def write_hdf5(path: Path, arrays: Mapping[str, Floats]) -> None:
    """Write arrays as contiguous float32, atomically; the same arrays give the same bytes."""
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise MissingExtraError.of("h5py", extra="hdf5", purpose="Writing HDF5") from error
    with scratch_for(path) as scratch, h5py.File(scratch, "w", libver="earliest") as file:
        for name, array in sorted(arrays.items()):
            data = np.ascontiguousarray(array, dtype="<f4")
            file.create_dataset(name, data=data, track_times=False)


def warm_up() -> None:
    """Import h5py and all that it imports late, by finding an array once in a file of our own."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file["group/array"] = np.zeros(1, dtype="<f4")
    find_arrays(stream, len(stream.getvalue()))
