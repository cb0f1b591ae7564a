"""Python processes of our own that do one thing and end; a port to listen on; and memory.

A port is taken before any other work: one that is not free is told at once.

Freed memory is kept for the next step of a training run, and handed back by a server that waits.
Where nothing is said, glibc keeps what threads free in up to eight arenas a processor, and Arrow
what it frees in a pool of its own: a server that opens one word after another grows by both.
"""

import contextlib
import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from polyseme.errors import ConfigError


def python_process(module: str, function: str, *arguments: str) -> list[str]:
    """The command of a process that calls a function of a module, and can import what this one can.

    Not `multiprocessing`: there a script that has no `if __name__ == "__main__"` would run again.
    """
    search = json.dumps([folder for folder in sys.path if folder])  # "" would be this folder
    start = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        f"from {module} import {function}; {function}(*sys.argv[2:])"
    )
    return [sys.executable, "-I", "-c", start, search, *arguments]


def limit_memory(num_bytes: int) -> None:
    """Let this process take so much more than it has now, on systems that can hold it to that."""
    if sys.platform != "linux":
        return  # macOS takes such a limit and does not keep it; Windows has none for oneself
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _, allowed = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + num_bytes
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


HOST = "127.0.0.1"
"""This machine alone."""
_WAITING = 2_048  # connections that may come before the server takes them


def open_port(port: int, host: str = HOST) -> socket.socket:
    """A socket that listens on this port; 0 is a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio would not turn off Nagle's algorithm: 40 ms for each answer.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(_WAITING)
    except OSError as error:
        taken.close()
        raise ConfigError(
            f"Cannot listen on port {port} of {host}: {error.strerror}. Choose another with "
            "--port, or leave it out to use a free one."
        ) from error
    return taken


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
