"""Freed memory: kept for the next step of a training run, handed back by a server that waits."""

import contextlib
import ctypes
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD = -1  # from glibc's malloc.h
_M_MMAP_THRESHOLD = -3
_LARGEST = (1 << 31) - 1


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed blocks of any size for the next allocation.

    By default it returns large blocks to the system at once, and each step gets every page of every
    large tensor again, zeroed by the kernel: a third of a training step's time on a processor.
    Says whether it could be done; elsewhere the program is merely slower.
    """
    mallopt = _glibc("mallopt")
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST) and mallopt(_M_TRIM_THRESHOLD, _LARGEST))


def return_freed_memory() -> bool:
    """Ask glibc to hand all that is free back to the system; says whether it could be done.

    Each thread frees into an arena of its own, which keeps what lies between blocks still in use:
    a process that works in many threads, one after another, grows without holding anything.
    """
    return bool(_glibc("malloc_trim")(0))


def _glibc(name: str) -> Callable[..., int]:
    """A function of glibc; where there is none, one that says that it failed."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
            return found
    return lambda *_: 0
