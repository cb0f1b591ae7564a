"""NumPy arrays one after another in a mapped file, and records of bytes kept in such arrays.

`np.save` writes an array after another into an open file, `np.load` reads them back in turn. Here
they are mapped, not read: a million records cost nothing until one is asked for. Nothing in such a
file is packed or points elsewhere, so a hostile one can hold wrong numbers but not take memory.
What does not fit is a `LimitError`.
"""

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from polyseme.limits import LimitError, open_regular

MOST_BYTES = 2 << 30
"""Records that are read at once."""
_TOGETHER = 8_192  # records in an array
_VERSION = (1, 0)
_LONGEST_HEADER = 256
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..{'descr': '([<|]u[1248])', 'fortran_order': False, "
    rb"'shape': \((\d{1,18}),\), } *\n",
    re.DOTALL,
)
Integers = npt.NDArray[np.int64]


def map_array(path: Path, dtype: Any, count: int | None = None) -> npt.NDArray[Any]:
    """A file of values of one type, mapped; LimitError if it is not as long as so many take."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        kind = np.dtype(dtype)
        if size % kind.itemsize or (count is not None and size != count * kind.itemsize):
            raise LimitError(f"{path.name} has {size:,} bytes, which is not what it should hold")
        if size == 0:
            return np.empty(0, kind)
        return np.memmap(stream, kind, mode="r")


def save_array(stream: IO[bytes], values: npt.NDArray[Any]) -> None:
    """One more array at the end of a file."""
    # Not the file itself: NumPy would write to it by C's stdio, whose last error it does not tell.
    writer: Any = SimpleNamespace(write=stream.write)
    np.lib.format.write_array(writer, values, _VERSION, allow_pickle=False)


def map_arrays(path: Path) -> list[npt.NDArray[Any]]:
    """All arrays of a file, mapped: rows of unsigned integers, or LimitError."""
    content = np.asarray(map_array(path, np.uint8))
    arrays, end = [], 0
    while end < len(content):
        header = _HEADER.match(content[end : end + _LONGEST_HEADER].tobytes())
        if header is None:
            raise LimitError(f"{path.name} has no array of integers at byte {end:,}")
        kind, begin = np.dtype(header[1].decode()), end + header.end()
        end = begin + int(header[2]) * kind.itemsize
        if end > len(content):
            raise LimitError(f"{path.name} is damaged: an array ends outside of it")
        arrays.append(content[begin:end].view(kind))
    return arrays


def record_files(name: str) -> list[str]:
    """The files of records of this name."""
    return [f"{name}.npy"]


class RecordWriter:
    """Writes records, or those of other files at once: where each ends, and their bytes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.with_name(f"{path.name}.npy").open("wb")
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def extend(self, records: Iterable[bytes]) -> None:
        """These records after those before."""
        waiting = iter(records)
        while some := list(islice(waiting, _TOGETHER)):
            save_array(self._stream, np.cumsum([len(record) for record in some], dtype="<u8"))
            save_array(self._stream, np.frombuffer(b"".join(some), np.uint8))
            self.count += len(some)

    def append_file(self, path: Path) -> None:
        """All records of another file, as they are."""
        self.count += len(Records(path))
        with open_regular(path.with_name(f"{path.name}.npy")) as stream:
            shutil.copyfileobj(stream, self._stream, 1 << 20)


class Records:
    """Records on disk."""

    def __init__(self, path: Path) -> None:
        self._name = f"{path.name}.npy"
        arrays = map_arrays(path.with_name(self._name))
        self._ends, self._bytes = arrays[::2], arrays[1::2]
        if len(arrays) % 2 or any(each.itemsize != 1 for each in self._bytes):
            raise LimitError(f"{self._name} does not hold records")
        self._firsts = np.cumsum([0, *map(len, self._ends)])

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def read(self, numbers: Integers | Sequence[int]) -> list[bytes]:
        """These records."""
        chosen = np.asarray(numbers, np.int64)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise LimitError(f"{self._name} has {len(self):,} records, and not the one asked for")
        arrays = np.searchsorted(self._firsts, chosen, side="right") - 1
        found, total = [], 0
        for array, at in zip(
            arrays.tolist(), (chosen - self._firsts[arrays]).tolist(), strict=True
        ):
            ends, content = self._ends[array], self._bytes[array]
            begin, end = int(ends[at - 1]) if at else 0, int(ends[at])
            total += end - begin
            if not begin <= end <= len(content) or total > MOST_BYTES:
                raise LimitError(f"{self._name} is damaged: a record lies outside of it")
            found.append(content[begin:end].tobytes())
        return found
