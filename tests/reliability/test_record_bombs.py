"""Nothing that is read takes more than its limit before it is rejected and counted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from polyseme.text.settings import InputFormat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux counts it")


def outcomes(folder: Path, number: int, *, seed: int, slow: int = 0) -> list[dict[str, Any]]:
    # Arrow's own allocator reserves a gigabyte of addresses, used or not, and that would count.
    arrow = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "reliability.record_bombs", *map(str, (number, seed, slow, folder))],
        check=False,
        env={**os.environ, **arrow, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=7_000,
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"died after {found[-1:]}: {ran.stderr[-2000:]}"
    return found


def check(found: list[dict[str, Any]]) -> None:
    """All is accounted for, and of each file what is too large, and that alone, was rejected."""
    print(f"{len(found):,} files, at most {max(each['peak'] for each in found) >> 20} MB,",
          f"{sum(each['seconds'] for each in found):.0f} s of work")  # fmt: skip
    wrong = [
        each
        for each in found
        if each["read"] != each["blank"] + each["kept"] + each["quarantined"]
        or each["quarantined"] != sum(each["reasons"].values())
        or not each["quarantined"]
        or each["kept"] > 2
    ]
    assert wrong == []


def test_every_format_is_tried() -> None:
    from reliability.record_bombs import SHAPES

    tried = {shape.format for shapes in SHAPES.values() for shape in shapes}
    assert tried == set(get_args(InputFormat))


@pytest.mark.timeout(900)  # some seconds where nothing else runs
def test_what_is_too_large_is_rejected_in_little_memory(tmp_path: Path) -> None:
    check(outcomes(tmp_path, 12, seed=1))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_none_of_a_thousand_files_takes_more_than_its_limit(tmp_path: Path) -> None:
    found = outcomes(tmp_path, 1_000, seed=100, slow=4)
    assert len(found) == 1_000
    check(found)
