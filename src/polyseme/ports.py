"""A port to listen on, taken before any other work: one that is not free is told at once."""

import socket

from polyseme.errors import ConfigError

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
