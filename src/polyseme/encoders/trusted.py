"""Whether a library that lies on the disk may be loaded: whose it is, who can write it, its hash.

A loaded library can do whatever the user can. So it must be the very file that was built here, and
nobody else may have been able to change it.
"""

import os
import stat
from pathlib import Path

from polyseme.files import sha256_of, write_text
from polyseme.limits import read_text

MODE = 0o755
"""Of a library and of its folder: whatever the umask, only the owner writes."""
_WRITTEN_BY_OTHERS = 0o022
_LONGEST_RECORD = 1024


class UntrustedLibraryError(Exception):
    """Why a library is not loaded."""


def record(library: Path, digest: str) -> None:
    """Write a library's SHA-256 beside it, as `sha256sum --check` reads it."""
    write_text(_record_of(library), f"{digest}  {library.name}\n")


def check(library: Path) -> str:
    """The library's SHA-256, if it may be loaded; an UntrustedLibraryError that says why if not."""
    _check_owner(library.parent, is_folder=True)
    _check_owner(library, is_folder=False)
    try:
        recorded = read_text(_record_of(library), _LONGEST_RECORD).split()[0]
    except (OSError, ValueError, IndexError) as error:
        raise UntrustedLibraryError(
            f"what it should be is not written in {_record_of(library).name} beside it"
        ) from error
    found = sha256_of(library)
    if found != recorded:
        raise UntrustedLibraryError(
            f"its SHA-256 is {found[:16]}…, and {recorded[:16]}… was built: it was changed since"
        )
    return found


def _record_of(library: Path) -> Path:
    return library.with_name(f"{library.name}.sha256")


def _check_owner(path: Path, *, is_folder: bool) -> None:
    """Not a link, and nobody's to write but this user's or root's."""
    facts = path.lstat()
    is_right = stat.S_ISDIR if is_folder else stat.S_ISREG
    if not is_right(facts.st_mode):
        kind = "a folder" if is_folder else "a regular file"
        raise UntrustedLibraryError(f"{path} is not {kind} but perhaps a link")
    if os.name == "nt":  # has neither these owners nor these modes
        return
    if facts.st_uid not in (0, os.geteuid()):
        raise UntrustedLibraryError(
            f"{path} belongs to user {facts.st_uid}, neither to you ({os.geteuid()}) nor to root"
        )
    if facts.st_mode & _WRITTEN_BY_OTHERS:
        mode = f"{stat.S_IMODE(facts.st_mode):o}"
        raise UntrustedLibraryError(f"others than its owner can write {path} (its mode is {mode})")
