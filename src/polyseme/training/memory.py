"""Freed memory: kept for the next step of a training run, handed back by a server that waits.

Where nothing is said, glibc keeps what threads free in up to eight arenas a processor, and Arrow
what it frees in a pool of its own: a server that opens one word after another grows by both.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable

_M_TRIM_THRESHOLD = -1  # from glibc's malloc.h
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_LARGEST = (1 << 31) - 1
_LARGE_BLOCK = 1 << 20
_ARENAS = 2  # as many threads as a server has at work at once


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed blocks of any size for the next allocation.

    By default it returns large blocks to the system at once, and each step gets every page of every
    large tensor again, zeroed by the kernel: a third of a training step's time on a processor.
    Says whether it could be done; elsewhere the program is merely slower.
    """
    mallopt = _glibc("mallopt")
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST) and mallopt(_M_TRIM_THRESHOLD, _LARGEST))


def hold_little_memory() -> bool:
    """For a process that waits most of the time: what is freed goes back to the system, at once if
    it is large, the rest by `return_freed_memory`. Arrow takes its memory from glibc as well.

    To be called before threads begin and Arrow is imported. Says whether it could be done.
    """
    mallopt = _glibc("mallopt")
    # A threshold that is set stays; left alone, it would rise to 32 MB with what is freed.
    is_done = bool(mallopt(_M_ARENA_MAX, _ARENAS) and mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK))
    if is_done:  # Arrow asks once; its own functions that choose a pool do not reach all of it
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    return is_done


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
