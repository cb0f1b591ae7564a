"""Members of zip archives, by names that we choose, with a limit on their size.

Nothing is ever unpacked as an archive wants it: it does not choose where a file goes, what it is
called, or how long it is. One member is read, under the name we ask for, and its bytes are counted.
Python's own reader of zips is written in Python, so it needs no sandbox; but a long index would
still fill the memory, and is looked at first. Tar archives, which can hold links, are not read.
"""

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from polyseme.errors import ModelError
from polyseme.storage.files import scratch_for

MAX_MEMBERS = 1_000
LONGEST_INDEX = 1 << 20
_PIECE = 1 << 20
STEEPEST = 200
"""Bytes that may come out for each that is stored; weights shrink hardly at all, texts tenfold."""
_END, _LARGE = b"PK\x05\x06", b"PK\x06\x07"


def read_member(archive: Path, name: str, *, limit: int) -> bytes:
    """One member's bytes, at most `limit`."""
    return b"".join(_pieces(archive, name, limit))


def extract_member(archive: Path, name: str, to: Path, *, limit: int) -> None:
    """One member's bytes, at most `limit`, into the file `to`: whole or not at all."""
    with scratch_for(to) as scratch, scratch.open("wb") as stream:
        for piece in _pieces(archive, name, limit):
            stream.write(piece)


def _pieces(archive: Path, name: str, limit: int) -> Iterator[bytes]:
    """The member's bytes as they are unpacked, refusing at the first one too many."""
    try:
        _check_index(archive)
        with zipfile.ZipFile(archive) as opened:
            told = _find(opened, archive, name)
            if told.file_size > limit:
                raise _refusal(archive, f"{name} has {told.file_size:,} bytes, over {limit:,}")
            with opened.open(told) as member:
                length = 0
                while piece := member.read(_PIECE):
                    length += len(piece)
                    if length > min(limit, _PIECE + STEEPEST * told.compress_size):
                        raise _refusal(archive, f"{name} unpacks to far more than is stored")
                    yield piece
    except FileNotFoundError as error:
        raise ModelError(f"There is no archive {archive}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise _refusal(archive, str(error)) from error


def _find(opened: zipfile.ZipFile, archive: Path, name: str) -> zipfile.ZipInfo:
    found = [member for member in opened.infolist() if member.filename == name]
    if not found:
        raise ModelError(f"There is no {name} in {archive}, only {_names(opened)}.")
    if len(found) > 1:
        raise _refusal(archive, f"it has {name} twice")
    told = found[0]
    kind = stat.S_IFMT(told.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or told.is_dir():
        raise _refusal(archive, f"{name} is a link or a folder")
    if told.flag_bits & 0x1:
        raise _refusal(archive, f"{name} is encrypted")
    if told.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _refusal(archive, f"{name} is compressed in an unusual way")
    return told


def _check_index(archive: Path) -> None:
    """Refuse an archive without an index or with a long one, before it is read."""
    with archive.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 22 - 0xFFFF))
        tail = stream.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 22:
        raise _refusal(archive, "it is no zip archive, the only kind that is read")
    # Archives over 4 GB have a second index end, which would be believed instead of this one.
    if tail[max(0, at - 20) : at].startswith(_LARGE):
        raise _refusal(archive, "it has the index of an archive over 4 GB")
    members, length = struct.unpack("<HI", tail[at + 10 : at + 16])
    if members > MAX_MEMBERS or length > LONGEST_INDEX:
        raise _refusal(archive, f"its index tells of {members:,} members in {length:,} bytes")


def _names(opened: zipfile.ZipFile) -> str:
    names = [ascii(member.filename[:60]) for member in opened.infolist()[:8]]
    return ", ".join(names) or "nothing"


def _refusal(archive: Path, why: str) -> ModelError:
    return ModelError(
        f"{archive} was refused: {why}. Copy it again from where it was published, or unpack it "
        "yourself and name the files in it."
    )
