"""System calls of a program, one by one: list them, then make any of them fail or be the last.

strace does the work, on a process that is forked with everything imported: what Python does to
begin is of no interest.
"""

import functools
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from required import needs

from reliability.forked import Forked, polyseme

# Everything that changes a file system, and what opens files.
CALLS = (
    "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,flock,"
    "mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,linkat,fchmod"
)
_LINE = re.compile(r"^(?P<thread>\d+) +(?P<call>\w+)\(")


@dataclass(frozen=True)
class Program:
    """A function, and what it is given."""

    function: Callable[..., object]
    given: tuple[object, ...]


def command(*words: object) -> Program:
    """`polyseme`, with these words after it."""
    return Program(polyseme, words)


@dataclass(frozen=True)
class Point:
    """The n-th call of one kind in the life of one thread; strace counts so."""

    call: str
    number: int
    text: str


@dataclass(frozen=True)
class Ended:
    """The exit code, and all that was said."""

    code: int
    said: str


@functools.cache
def why_not() -> str | None:
    """Why calls cannot be traced here, or None if they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(
        ["strace", "-e", "inject=fsync:error=EIO:when=1", "true"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "strace may not trace processes here"


needs_strace = needs(why_not() is None, why_not() or "strace works", only_on="linux")


def list_points(program: Program, log: Path, touching: Path) -> list[Point]:
    """Run the program once in peace, and list its successful calls that concern a folder."""
    ended = _strace(program, log.with_suffix(".said"), "-y", "-s", "256", "-o", str(log))
    assert ended.code == 0, ended.said
    seen: Counter[tuple[str, str]] = Counter()
    points: list[Point] = []
    for line in log.read_text(errors="replace").splitlines():
        if found := _LINE.match(line):
            seen[found["thread"], found["call"]] += 1
            if str(touching) in line and " = -1 " not in line:
                number = seen[found["thread"], found["call"]]
                points.append(Point(found["call"], number, line))
    return points


def run_with(program: Program, point: Point, effect: str, said: Path) -> Ended:
    """Run the program with `signal=KILL` or `error=ENOSPC` at one point."""
    fault = f"inject={point.call}:{effect}:when={point.number}"
    return _strace(program, said, "-o", "/dev/null", "-e", fault)


def sample(points: list[Point], number: int) -> list[Point]:
    """Points spread evenly over the program."""
    if number >= len(points):
        return points
    return [points[i * len(points) // number] for i in range(number)]


def _strace(program: Program, said: Path, *options: str) -> Ended:
    traced = Forked(program.function, *program.given, said=said, is_held=True)
    look = ["strace", "-f", "-p", str(traced.pid), "-e", f"trace={CALLS}", *options]
    with subprocess.Popen(look, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr
        told = tracer.stderr.readline()
        assert "attached" in told, told
        traced.let_go()
        code = traced.wait(120)
        if code is None:
            traced.kill()
        tracer.communicate(timeout=60)
    assert code is not None, f"not done in two minutes: {said.read_text()}"
    return Ended(code, said.read_text())


def python(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", module, *map(str, arguments)]
