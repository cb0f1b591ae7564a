"""Whether this machine can lock a process in, and reading a whole folder of untrusted files."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from required import needs

MANY = Path(__file__).parent / "many.py"


def has_sandbox() -> bool:
    code = "from polyseme.legacy import sandbox; sandbox.lock()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return run.returncode == 0


needs_sandbox = needs(has_sandbox(), "a kernel with Landlock and seccomp", only_on="linux")


@dataclass(frozen=True)
class Told:
    """What became of each file of a folder, and the memory and time the largest process took."""

    outcomes: dict[str, str]
    bytes: int
    seconds: float
    heard: list[str]
    """What Python was asked to run, import or start in the process that started the others."""


def read_many(kind: str, folder: Path, mode: str = "") -> Told:
    """As `many.py` says."""
    command = [sys.executable, str(MANY), kind, str(folder), mode]
    run = subprocess.run(command, capture_output=True, check=True, text=True)
    return Told(**json.loads(run.stdout))
