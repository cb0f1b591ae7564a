"""Many small pieces of bytes in one file, any of them read without the others, each with a CRC-32.

    NAME.bin      the records, one after another
    NAME.places   for each record where it begins (int64) and its CRC-32; one more for the end

Both are mapped, not read: a million records cost nothing until one is asked for. A record whose
bytes are not as they were written is a `LimitError`, as is one that is longer than any should be.
"""

import os
import shutil
import zlib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from polyseme.limits import LONGEST_LINE, LimitError, open_regular

PLACE = np.dtype([("begin", "<i8"), ("crc", "<u4")])
MOST_BYTES = 2 << 30
"""Records that are read at once."""
_TOGETHER = 8_192
_SUFFIXES = (".bin", ".places")
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


def record_files(name: str) -> list[str]:
    """The files of records of this name."""
    return [name + suffix for suffix in _SUFFIXES]


class RecordWriter:
    """Writes both files, a record at a time, or those of other files at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._bytes, self._places = (path.with_name(name).open("wb")
                                     for name in record_files(path.name))  # fmt: skip
        self._end = self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._bytes, self._places:
            if kind is None:
                self._places.write(np.array([(self._end, 0)], PLACE).tobytes())

    def extend(self, records: Iterable[bytes]) -> None:
        """These records after those before."""
        waiting = iter(records)
        while some := list(islice(waiting, _TOGETHER)):
            ends = self._end + np.cumsum([len(record) for record in some])
            places = np.empty(len(some), PLACE)
            places["begin"] = [self._end, *ends[:-1].tolist()]
            places["crc"] = [zlib.crc32(record) for record in some]
            self._bytes.write(b"".join(some))
            self._places.write(places.tobytes())
            self._end = int(ends[-1])
            self.count += len(some)

    def append_file(self, path: Path) -> None:
        """All records of another file, as they are."""
        data, places = (path.with_name(name) for name in record_files(path.name))
        each = np.array(map_array(places, PLACE))
        each["begin"] += self._end
        self._places.write(each[:-1].tobytes())
        with open_regular(data) as stream:
            shutil.copyfileobj(stream, self._bytes, 1 << 20)
        self._end = int(each["begin"][-1])
        self.count += len(each) - 1


class Records:
    """Records on disk."""

    def __init__(self, path: Path, longest: int = LONGEST_LINE) -> None:
        self._name, self._longest = path.name, longest
        data, places = (path.with_name(name) for name in record_files(path.name))
        self._view = map_array(data, np.uint8).data
        self._places = map_array(places, PLACE)
        if not len(self._places):
            raise LimitError(f"{places.name} is empty")

    def __len__(self) -> int:
        return len(self._places) - 1

    def read(self, numbers: Integers | Sequence[int]) -> list[bytes]:
        """These records, each held against its CRC-32."""
        return [bytes(view) for view in self.views(numbers)]

    def views(self, numbers: Integers | Sequence[int]) -> list[memoryview]:
        """The same, still in the mapped file: nothing is copied."""
        chosen = np.asarray(numbers, np.int64)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise LimitError(f"{self._name} has {len(self):,} records, and not the one asked for")
        begins, ends = (self._places["begin"][chosen + step] for step in (0, 1))
        lengths = ends - begins
        if not ((begins >= 0) & (lengths >= 0) & (ends <= len(self._view))).all():
            raise LimitError(f"{self._name} is damaged: a record lies outside of it")
        if lengths.max(initial=0) > self._longest or lengths.sum() > MOST_BYTES:
            raise LimitError(f"{self._name} has a record that is longer than any should be")
        pairs = zip(begins.tolist(), ends.tolist(), strict=True)
        found = [self._view[begin:end] for begin, end in pairs]
        for record, crc in zip(found, self._places["crc"][chosen].tolist(), strict=True):
            if zlib.crc32(record) != crc:
                raise LimitError(f"{self._name} is damaged: a record is not as it was written")
        return found
