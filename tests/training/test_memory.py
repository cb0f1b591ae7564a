"""Freed memory goes back to the system, as seen from outside."""

import subprocess
import sys

import pytest
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


HELD = """
import sys
from pathlib import Path
from polyseme.training.memory import hold_little_memory

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

if sys.argv[1] == "hold":
    hold_little_memory()
import pyarrow as pa
for _ in range(2):
    bytes(30 << 20)  # when it is freed, glibc by its own rules keeps blocks of this size
blocks = [bytes(b"a" * (2 << 20)) for _ in range(50)]
last = bytes(b"a" * (1 << 19))
before = megabytes()
del blocks
print(before - megabytes(), pa.default_memory_pool().backend_name)
"""


def freed(what: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", HELD, what], capture_output=True, text=True, check=True
    )
    megabytes, pool = done.stdout.split()
    return int(megabytes), pool


def test_a_process_that_holds_little_returns_large_blocks_at_once() -> None:
    need(sys.platform == "linux", "Linux with glibc", only_on="linux")
    megabytes, pool = freed("hold")
    assert megabytes == pytest.approx(100, abs=10)
    assert pool == "system"
    megabytes, pool = freed("nothing")
    assert megabytes < 20
    assert pool != "system"
