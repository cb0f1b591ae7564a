"""Reads `requirements.lock`: every package with its version, its marker and its hashes."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Locked:
    """One package at one version."""

    name: str
    version: str
    marker: str
    """On which systems it is installed; empty: on all."""
    hashes: tuple[str, ...]
    """SHA-256 of each file it may be installed from."""


def read_lock(path: Path = LOCK) -> list[Locked]:
    """All packages of a lock. A line that is none of them is an error, not passed over."""
    found: list[Locked] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if package := _PACKAGE.match(line):
            name, version, marker = package.groups(default="")
            found.append(Locked(name, version, marker, ()))
        elif (digest := _HASH.search(line)) and found:
            last = found[-1]
            found[-1] = Locked(last.name, last.version, last.marker, (*last.hashes, digest[1]))
        else:
            raise ValueError(f"{path}: {line!r} is neither a package nor a hash.")
    return found
