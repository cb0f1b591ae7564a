"""Members of zip archives, by names that we choose, with a limit on their size.

Nothing is ever unpacked as an archive wants it: it does not choose where a file goes, what it is
called, or how long it is. Members are read under the names we ask for, and their bytes are counted.
A long index would fill the memory, and is looked at first. Tar archives, which can hold links, are
not read.
"""

import contextlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from polyseme.limits import open_regular
from polyseme.storage.files import scratch_for

MAX_MEMBERS = 4_000
LONGEST_INDEX = 1 << 20
STEEPEST = 200
"""Bytes that may come out for each that is stored; weights shrink hardly at all, texts tenfold."""
_PIECE = 1 << 20
_END, _LARGE = b"PK\x05\x06", b"PK\x06\x07"
_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError)


class ArchiveError(Exception):
    """An archive, or a member, that is not read. Its text is the reason."""


class MissingMemberError(ArchiveError):
    """A member that is not there."""


class Archive:
    """A zip archive whose index was found sound."""

    def __init__(self, path: Path) -> None:
        with _faults_told():
            size = _check_index(path)
            self._opened = zipfile.ZipFile(path)
        self._left = _PIECE + STEEPEST * size  # members may lie over each other in the file

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def names(self) -> list[str]:
        """All members, as the archive calls them."""
        return self._opened.namelist()

    def read(self, name: str, *, limit: int) -> bytes:
        """One member's bytes, at most `limit`."""
        return b"".join(self.pieces(name, limit=limit))

    def pieces(self, name: str, *, limit: int) -> Iterator[bytes]:
        """The member's bytes as they are unpacked, refusing at the first one too many."""
        with _faults_told():
            info = self._find(name)
            if info.file_size > limit:
                raise ArchiveError(f"{name} has {info.file_size:,} bytes, over {limit:,}")
            with self._opened.open(info) as member:
                length = 0
                while piece := member.read(_PIECE):
                    length += len(piece)
                    self._left -= len(piece)
                    most = min(limit, _PIECE + STEEPEST * info.compress_size)
                    if length > most or self._left < 0:
                        raise ArchiveError(f"{name} unpacks to far more than is stored")
                    yield piece

    def _find(self, name: str) -> zipfile.ZipInfo:
        found = [member for member in self._opened.infolist() if member.filename == name]
        if not found:
            there = ", ".join(ascii(other[:60]) for other in self.names[:8]) or "nothing"
            raise MissingMemberError(f"There is no {name}, only {there}")
        if len(found) > 1:
            raise ArchiveError(f"it has {name} twice")
        info = found[0]
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or info.is_dir():
            raise ArchiveError(f"{name} is a link or a folder")
        if info.flag_bits & 0x1:
            raise ArchiveError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{name} is compressed in an unusual way")
        return info


def extract_member(archive: Path, name: str, to: Path, *, limit: int) -> None:
    """One member's bytes, at most `limit`, into the file `to`: whole or not at all."""
    with Archive(archive) as opened, scratch_for(to) as scratch, scratch.open("wb") as stream:
        for piece in opened.pieces(name, limit=limit):
            stream.write(piece)


@contextlib.contextmanager
def _faults_told() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise ArchiveError(str(error)) from error


def _check_index(archive: Path) -> int:
    """The size of the file; refused without an index or with a long one, before that is read."""
    with open_regular(archive) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 22 - 0xFFFF))
        tail = stream.read(22 + 0xFFFF)
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 22:
        raise ArchiveError("it is not a zip archive, the only kind that is read")
    # Archives over 4 GB have a second index end, which would be believed instead of this one.
    if tail[max(0, at - 20) : at].startswith(_LARGE):
        raise ArchiveError("it has the index of an archive over 4 GB")
    members, length = struct.unpack("<HI", tail[at + 10 : at + 16])
    if members > MAX_MEMBERS or length > LONGEST_INDEX:
        raise ArchiveError(f"its index lists {members:,} members in {length:,} bytes")
    return size
