"""Edits on disk: `edits.jsonl`, a line each, to which lines are only ever added.

    in    an edit
    out   its number; and all edits of a file, in order

An entry is there once its line end is on the disk. A process that is killed before leaves a torn
line: it is no entry, the reader is told, and the next writer moves it to a file of its own.
Written in place, so the file must be no other file too: a link in its place is refused.
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from polyseme.errors import InputError, StorageError
from polyseme.limits import JSON_BYTES, parse_json, read_bytes
from polyseme.meanings.annotation.edits import Edit
from polyseme.printable import printable
from polyseme.storage.files import disk_faults_explained, scratch_for, write_text
from polyseme.storage.locks import hold_file

NAME = "edits.jsonl"
_WAIT = 30  # seconds that an edit waits for others to be written
_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


@dataclass(frozen=True, slots=True)
class EditLog:
    """What a file of edits holds."""

    edits: tuple[Edit, ...]
    torn: bytes = b""
    """What was being written when a process was killed; no part of `edits`."""

    @property
    def message(self) -> str:
        """What a user should be told of it; mostly nothing."""
        if not self.torn:
            return ""
        begin = printable(self.torn[:60].decode("utf-8", errors="replace"))
        return (
            f"Edit {len(self.edits) + 1:,} was cut short while being written and is skipped: "
            f"{begin}… Make it again."
        )


def read_edits(path: Path) -> EditLog:
    """All edits of a file; none, if there is no such file. One that is damaged is refused."""
    try:
        content = read_bytes(path, JSON_BYTES)
    except FileNotFoundError:
        return EditLog(())
    except (OSError, ValueError) as error:
        raise InputError(f"The edits in {path} cannot be read: {error}.") from error
    *lines, torn = content.split(b"\n")
    edits = tuple(_parse(line, path, number) for number, line in enumerate(lines, start=1))
    return EditLog(edits, torn)


def append_edit(path: Path, edit: Edit) -> int:
    """Add an edit and return its number, once it is on the disk: whole, or not at all."""
    return append_next(path, lambda _: edit)


def append_next(path: Path, make_edit: Callable[[tuple[Edit, ...]], Edit]) -> int:
    """The same, of an edit that follows from all that there are: nobody adds another meanwhile."""
    with disk_faults_explained(path.parent), hold_file(path, wait=_WAIT):
        _refuse_link(path)
        log = read_edits(path)
        line = _EDIT.dump_json(make_edit(log.edits), exclude_none=True) + b"\n"
        number = len(log.edits) + 1
        if not path.exists():
            write_text(path, "")  # so that its name lasts, too
        end = path.stat().st_size - len(log.torn)
        if end + len(line) > JSON_BYTES:
            raise InputError(
                f"{path} would have more than {JSON_BYTES:,} bytes, the most that is read. "
                "Save the groups as they are now, and begin a new file of edits."
            )
        if log.torn:
            with scratch_for(path.with_name(f"{path.name}.torn-{number}")) as aside:
                aside.write_bytes(log.torn)
        _write(path, line, end)
    return number


def _parse(line: bytes, path: Path, number: int) -> Edit:
    try:
        return _EDIT.validate_python(parse_json(line.decode("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}" if where else first["msg"]
    except ValueError as error:
        reason = str(error)
    raise InputError(
        f"Line {number:,} of {path} is not an edit: {printable(reason[:200])}. Restore the file "
        "from a copy, or remove this line if you know what it was."
    )


def _write(path: Path, line: bytes, end: int) -> None:
    """Put a line at the end of a file and cut off what stood there; after a failure, it is gone."""
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    try:
        os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)
        left = line
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, end)
        raise
    finally:
        os.close(handle)


def _refuse_link(path: Path) -> None:
    if path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1):
        raise StorageError(
            f"{path} is a link to another file, or another name of one, and Polyseme writes to it "
            "in place. Put a copy there."
        )
