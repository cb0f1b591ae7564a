"""Files that are either absent or complete: hashing, durable writes, atomic publication.

Every file the program leaves under a final name gets there through `publish`. That is the one
place to change when the final place is an object store, where a put takes the rename's part.
"""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyseme.errors import PolysemeError, StorageError

WORK = ".work"
"""Folder for what is unfinished, inside the one it is meant for; the next run removes it."""
_CHUNK = 1 << 20
_DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG}


def sha256_of(path: Path, start: int = 0, stop: int | None = None) -> str:
    """SHA-256 of a file, or of its bytes from `start` up to `stop`."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        stream.seek(start)
        left = float("inf") if stop is None else stop - start
        while left > 0 and (chunk := stream.read(int(min(_CHUNK, left)))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.hexdigest()


def describe_file(path: Path) -> dict[str, Any]:
    """What a manifest tells of a file: its size and its SHA-256."""
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def is_as_written(path: Path, told: Mapping[str, Any]) -> bool:
    """Whether a file is there and is, byte for byte, what a manifest tells of it."""
    return path.is_file() and sha256_of(path) == told["sha256"]


def canonical_json(value: Any) -> str:
    """JSON that is the same text for the same value, so that it can be hashed and compared.

    What UTF-8 cannot hold, as a file name's stray bytes, is escaped: `\\udcff`.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def publish(scratch: Path, final: Path) -> None:
    """Move a finished file to its final name: durable first, then visible, in one step."""
    flush_to_disk(scratch)
    _make_folder(final.parent)
    scratch.replace(final)
    _flush_folder(final.parent)


def publish_folder(scratch: Path, final: Path) -> None:
    """Move a finished folder of files to its final name: durable first, then visible at once."""
    for path in sorted(scratch.iterdir()):
        flush_to_disk(path)
    _flush_folder(scratch)
    _make_folder(final.parent)
    scratch.rename(final)
    _flush_folder(final.parent)


def write_text(final: Path, text: str, *, scratch_folder: Path | None = None) -> None:
    """Write a small text file atomically. Its scratch file lies in a `WORK` folder unless told."""
    if scratch_folder is None:
        work = final.parent / WORK
        work.mkdir(parents=True, exist_ok=True)
        write_text(final, text, scratch_folder=work)
        with contextlib.suppress(OSError):  # not empty: others have work in it
            work.rmdir()
        return
    scratch = scratch_folder / f"{final.name}.{os.getpid()}"
    try:
        # Bytes: no newline translation on Windows. A stray byte of a name is no reason to stop.
        scratch.write_bytes(text.encode("utf-8", errors="backslashreplace"))
        publish(scratch, final)
    finally:
        scratch.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Return only when the file's bytes are on the disk."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


@contextlib.contextmanager
def disk_faults_explained(folder: Path) -> Iterator[None]:
    """Turn a full or failing disk into a StorageError that says what is safe and what to do."""
    try:
        yield
    except Exception as error:
        fault = _disk_fault(error)
        if fault is None:
            raise
        raise StorageError(
            f"Writing to {folder} failed: {os.strerror(fault)}. What was finished before is "
            "complete and safe; nothing half-written is visible. Make room (or mend the disk) and "
            "run the same command again: it goes on with what is missing."
        ) from error


def _disk_fault(error: Exception) -> int | None:
    """The number of the disk's fault, if it is one. DuckDB tells of it in words only."""
    if isinstance(error, OSError):
        return error.errno if error.errno in _DISK_FAULTS else None
    if isinstance(error, PolysemeError):
        return None
    if "max_temp_directory_size" in str(error):
        return errno.ENOSPC  # it measures the free space first and then refuses to exceed it
    return next((number for number in _DISK_FAULTS if os.strerror(number) in str(error)), None)


def _make_folder(folder: Path) -> None:
    """Make a folder whose name lasts; otherwise a power cut could take it, and all in it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_folder(folder.parent)


def _flush_folder(folder: Path) -> None:
    """Make a rename durable. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
