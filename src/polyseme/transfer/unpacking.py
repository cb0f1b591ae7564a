"""A file of static vectors as a stream of bytes, unpacked if it is gzipped, but not without end."""

import gzip
import io
from pathlib import Path
from typing import IO, Any

from polyseme.errors import InputError
from polyseme.limits import LARGEST_RATIO

FREE_BYTES = 1 << 24
"""Unpacked from even the smallest file; from a larger one LARGEST_RATIO times its size."""


def open_vectors(path: Path) -> IO[bytes]:
    """The file, wherever its name says it is packed or not."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    magic = stream.read(2)
    stream.seek(0)
    if magic != b"\x1f\x8b":
        return stream
    stream.close()
    return io.BufferedReader(_Measured(path), 1 << 16)


class _Measured(io.RawIOBase):
    """A gzipped file, until it proves to be a bomb."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._packed = path, path.stat().st_size
        self._stream = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        number = self._stream.readinto(buffer)
        if self._stream.tell() > max(FREE_BYTES, LARGEST_RATIO * self._packed):
            raise InputError(
                f"{self._path} is no file of vectors: its {self._packed:,} bytes unpack to over "
                f"{LARGEST_RATIO} times as many."
            )
        return number

    def close(self) -> None:
        self._stream.close()
        super().close()
