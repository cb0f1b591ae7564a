"""Python processes of our own that do one thing and end; and a port to listen on.

A port is taken before any other work: one that is not free is told at once.
"""

import json
import socket
import sys
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
