"""A word's uses on local pages: read, seen on a map, judged, compared, scored, exported.

Here is what the commands that open the explorer share; importing it loads no web framework.
"""

from pydantic import Field

from polyseme.config import Settings


class PagesConfig(Settings):
    """Where pages are served: only on this machine."""

    port: int = Field(0, ge=0, le=65535)
    """Port on 127.0.0.1; 0 uses a free one."""
    no_browser: bool = False
    """Do not open a browser; the address is printed either way."""
    idle: float | None = Field(None, ge=0)
    """Stop after this many minutes without a request; by default, run until Ctrl-C."""
