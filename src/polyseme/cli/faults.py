"""What went wrong outside Polyseme, or inside it, as an error a user can act on.

The Python API raises what happened. The command line asks here for words instead of a traceback.
"""

import errno
import os
import tempfile
import traceback

from polyseme.errors import (
    AccessError,
    InputError,
    InternalError,
    OutOfMemoryError,
    PolysemeError,
    StorageError,
)
from polyseme.storage.files import WORK

# Torch, Arrow, DuckDB and C++ say so in words only.
_OUT_OF_MEMORY = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "bad allocation",
)
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG}


def explain(error: Exception) -> PolysemeError:
    """The error to show: this one, if it is written for users, or one that explains it."""
    if isinstance(error, PolysemeError):
        return error
    if _is_out_of_memory(error):
        return OutOfMemoryError(
            f"There was not enough memory ({_first_line(error)}). Finished work is kept. "
            "Use fewer --workers, smaller batches (--set batches.words=1024, or training.batch=8 "
            "of a task), a smaller model or vocabulary, or a machine with more memory."
        )
    if isinstance(error, OSError) and error.errno is not None:
        return _explain_system(error)
    return _explain_bug(error)


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    # Only what libraries raise: a file name that says so proves nothing.
    text = "" if isinstance(error, OSError | ValueError | LookupError) else str(error).lower()
    return any(words in text for words in _OUT_OF_MEMORY)


def _explain_system(error: OSError) -> PolysemeError:
    """What the operating system refused, by its number."""
    given = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_name(name)]
    names = list(dict.fromkeys(map(_as_named, given)))
    where = " and ".join(names) or "A file"
    reason = os.strerror(error.errno or 0)
    if error.errno in _NOT_ALLOWED:
        return AccessError(
            f"{where} cannot be read or written by this user: {reason}. Change its permissions "
            "(ls -ld shows them), or name another place."
        )
    if error.errno in _NOT_THERE:
        return InputError(
            f"{where} cannot be opened: {reason}. Check the name, and that nothing else moved it."
        )
    return StorageError(
        f"{where} could not be read or written: {reason}. Finished work is kept: fix that "
        "and run the same command again."
    )


def _as_named(path: str) -> str:
    """A path as its user knows it: without what only we put into a folder while we work."""
    folder, found, _ = path.partition(f"{os.sep}{WORK}")
    return folder if found else path.removesuffix(f"{os.sep}.lock")


def _is_name(value: object) -> bool:
    return isinstance(value, str | bytes | os.PathLike)


def _explain_bug(error: Exception) -> PolysemeError:
    """Nobody's fault but ours: say so, and keep what is needed to mend it."""
    lines = traceback.format_exception(error)
    try:
        handle, name = tempfile.mkstemp(prefix="polyseme-", suffix=".traceback.txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
        where = [f"Please report it with the file {name}, which has the details."]
    except OSError:
        where = ["Please report it with these lines:", *"".join(lines).splitlines()]
    return InternalError(
        f"This is a bug in Polyseme ({_first_line(error)}). Finished work is kept.",
        *where,
    )


def _first_line(error: Exception) -> str:
    line = next(iter(str(error).splitlines()), "")[:300]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
