"""The command as a user runs it, in a process of its own."""

import subprocess
import sys
from pathlib import Path


def polyseme(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `polyseme` with these words; it must end with this exit code."""
    command = [sys.executable, "-m", "polyseme", *map(str, words)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, encoding="utf-8", check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result
