"""A file that is written elsewhere and gets its name when it is whole."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from polyseme.files import WORK, publish


@contextlib.contextmanager
def scratch_for(final: Path) -> Iterator[Path]:
    """Where to write what becomes `final` if nothing fails; otherwise nothing is left of it."""
    scratch = final.parent / WORK / f"{final.name}.{os.getpid()}"
    scratch.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield scratch
        publish(scratch, final)
    finally:
        scratch.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: others have work in it
            scratch.parent.rmdir()
