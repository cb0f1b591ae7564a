"""System calls of a program, one by one: list them, then make any of them fail or be the last.

strace does the work. A program to be traced calls `announce` when it is done with its imports;
what it did before is of no interest.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# Everything that changes a file system, and what opens files.
CALLS = (
    "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,flock,"
    "mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,fchmod"
)
_BEGIN = "/the-program-begins"
_LINE = re.compile(r"^(?P<thread>\d+) +(?P<call>\w+)\(")


@dataclass(frozen=True)
class Point:
    """The n-th call of one kind in the life of one thread; strace counts so."""

    call: str
    number: int
    text: str


def announce() -> None:
    """Leave a mark in the list of calls."""
    try:
        os.close(os.open(_BEGIN, os.O_RDONLY))
    except FileNotFoundError:
        return


def why_not() -> str | None:
    """Why calls cannot be traced here, or None if they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(
        ["strace", "-e", "inject=fsync:error=EIO:when=1", "true"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "strace may not trace processes here"


def list_points(command: list[str], log: Path, touching: Path) -> list[Point]:
    """Run the program once in peace, and list its successful calls that concern a folder."""
    _strace(command, "-y", "-s", "256", "-o", str(log), check=True)
    seen: Counter[tuple[str, str]] = Counter()
    points: list[Point] = []
    has_begun = False
    for line in log.read_text(errors="replace").splitlines():
        if found := _LINE.match(line):
            seen[found["thread"], found["call"]] += 1
            has_begun = has_begun or _BEGIN in line
            if has_begun and str(touching) in line and " = -1 " not in line:
                number = seen[found["thread"], found["call"]]
                points.append(Point(found["call"], number, line))
    return points


def run_with(command: list[str], point: Point, effect: str) -> "subprocess.CompletedProcess[str]":
    """Run the program with `signal=KILL` or `error=ENOSPC` at one point."""
    return _strace(
        command, "-o", "/dev/null", "-e", f"inject={point.call}:{effect}:when={point.number}"
    )


def sample(points: list[Point], number: int) -> list[Point]:
    """Points spread evenly over the program."""
    if number >= len(points):
        return points
    return [points[i * len(points) // number] for i in range(number)]


def _strace(
    command: list[str], *options: str, check: bool = False
) -> "subprocess.CompletedProcess[str]":
    """The same program each time: no hash seeds and no byte code to be written."""
    return subprocess.run(
        ["strace", "-f", "-e", f"trace={CALLS}", *options, *command],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=check,
    )


def python(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]
