"""What the commands that open the explorer share: where it listens, and when it ends."""

import socket

from pydantic import Field

from polyseme.config import Settings
from polyseme.errors import ConfigError

HOST = "127.0.0.1"


class ServeConfig(Settings):
    """Where pages are served: only on this machine."""

    port: int = Field(0, ge=0, le=65535)
    """Port on 127.0.0.1; 0 uses a free one."""
    no_browser: bool = False
    """Do not open a browser; the address is printed either way."""
    idle: float | None = Field(None, ge=0)
    """Stop after this many minutes without a request; by default, run until Ctrl-C."""


def open_port(config: ServeConfig) -> socket.socket:
    """A port to serve on, taken before any other work: one that is not free is told at once."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((HOST, config.port))
        taken.listen(128)  # whoever is told the address may ask at once, and waits a moment
    except OSError as error:
        taken.close()
        raise ConfigError(
            f"Cannot listen on port {config.port} of {HOST}: {error.strerror}. Choose another with "
            "--port, or leave it out to use a free one."
        ) from error
    return taken
