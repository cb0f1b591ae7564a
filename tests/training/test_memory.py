"""Freed memory goes back to the system, as seen from outside."""

import subprocess
import sys

from required import need

CODE = """
import sys
from pathlib import Path
from polyseme.training.memory import return_freed_memory

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

blocks = [bytes(1000) for _ in range(200_000)]
last = blocks.pop()  # keeps all below it from going back by itself
del blocks
before = megabytes()
if sys.argv[1] == "return":
    return_freed_memory()
print(before - megabytes())
"""


def returned(what: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", CODE, what], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_what_is_free_is_handed_back_and_otherwise_kept() -> None:
    need(sys.platform == "linux", "Linux with glibc", only_on="linux")
    assert returned("return") > 100
    assert returned("nothing") < 10
