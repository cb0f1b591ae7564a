"""Names for what is unfinished: no two alike, and each names the process that made it.

So whoever works in the same folder later can tell what a dead process has left from what a living
one is writing.
"""

import functools
import hashlib
import os
import platform
import re
import uuid
from pathlib import Path

_NAME = re.compile(r"(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]{1,9})-[0-9a-f]{12}(\..*)?")


def new_name(suffix: str = "") -> str:
    """A name that no other call gives, here or on any machine; libraries may need the suffix."""
    return f"{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:12]}{suffix[:16]}"


def is_abandoned(name: str) -> bool:
    """Whether it is the name of a process of this machine that is no more."""
    found = _NAME.fullmatch(name)
    if found is None or found["machine"] != _machine() or os.name == "nt":
        return False
    try:
        os.kill(int(found["process"]), 0)  # asks whether it is there, and does nothing to it
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


@functools.cache
def _machine() -> str:
    """Where process numbers mean the same: this machine, or this container on it."""
    numbering = Path("/proc/self/ns/pid")
    identity = f"{platform.node()} {numbering.stat().st_ino if numbering.exists() else 0}"
    return hashlib.sha256(identity.encode()).hexdigest()[:8]
