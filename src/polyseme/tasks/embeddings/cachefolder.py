"""The folder that caches lie in: how much they take, what may be removed, what still fits.

A link in it is never followed to remove anything: what it leads to is not ours.
"""

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from polyseme.errors import StorageError
from polyseme.storage.files import WORK

LAYERS, MANIFEST = "layers.bin", "manifest.json"
_GIGABYTE = 1_000_000_000
_ABANDONED = 24 * 3600  # seconds after which unfinished work is nobody's


@dataclass(frozen=True)
class CacheEntry:
    """One cache on disk."""

    path: Path
    num_bytes: int
    used: float
    """When it was last opened, in seconds since 1970."""


def list_caches(folder: Path) -> list[CacheEntry]:
    """All caches of a folder, that which has lain idle longest first."""
    entries = []
    for path in folder.glob(f"*/{LAYERS}"):
        if path.parent.is_symlink():
            continue
        with contextlib.suppress(FileNotFoundError):  # another process removes it just now
            manifest = path.parent / MANIFEST
            used = (manifest if manifest.exists() else path).stat().st_mtime
            entries.append(CacheEntry(path.parent, path.stat().st_size, used))
    return sorted(entries, key=lambda entry: (entry.used, entry.path))


def trim_caches(folder: Path, max_gigabytes: float) -> list[CacheEntry]:
    """Remove caches, the longest idle first, until the others fit; returns those removed.

    0 removes all. Work that a killed process left behind goes too, after a day.
    """
    work = folder / WORK
    for scratch in () if work.is_symlink() else work.glob("*"):
        if time.time() - scratch.lstat().st_mtime > _ABANDONED:
            shutil.rmtree(scratch, ignore_errors=True)
    left = list_caches(folder)
    removed = []
    while left and sum(entry.num_bytes for entry in left) > max_gigabytes * _GIGABYTE:
        oldest = left.pop(0)
        remove_cache(oldest.path)
        removed.append(oldest)
    return removed


def remove_cache(path: Path) -> None:
    """Remove a cache, if there is one; of a link in its place, the link."""
    if path.is_symlink():
        path.unlink()
        return
    # The manifest first: without it a half-removed cache is none.
    (path / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


def note_use(path: Path) -> None:
    """Tell by the time of its manifest that a cache is in use, unless it is some other file too."""
    manifest = path / MANIFEST
    if not manifest.is_symlink() and manifest.stat().st_nlink == 1:
        os.utime(manifest)


def check_room(folder: Path, num_bytes: int, max_gigabytes: float) -> None:
    """Refuse a cache that would not fit, saying how large it would be."""
    entries = list_caches(folder)
    held = sum(entry.num_bytes for entry in entries)
    if held + num_bytes > max_gigabytes * _GIGABYTE:
        raise StorageError(
            f"The layers of this data would take {_told(num_bytes)}; {folder} holds {_told(held)} "
            f"in {len(entries)} caches, and cache.max_gigabytes is {max_gigabytes:g}. Remove old "
            "caches (any may go), raise the limit, keep float16 numbers, or set cached = false: "
            "then layers are recomputed each time."
        )
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        raise StorageError(
            f"The layers of this data would take {_told(num_bytes)}, and the disk of "
            f"{os.fspath(folder)} has {_told(free)} left. Free some space, choose another "
            "cache.folder, or set cached = false: then layers are recomputed each time."
        )


def _told(num_bytes: int) -> str:
    return f"{num_bytes / _GIGABYTE:.3g} GB"
