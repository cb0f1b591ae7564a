"""A process that locked itself in reaches nothing; a machine without the locks reads nothing."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from legacy.sandboxed import needs_sandbox
from polyseme.legacy.syscalls import CALLS, make_filter

ATTEMPTS = {
    "read a file": "open(target).read()",
    "write a file": "open(target + '2', 'w')",
    "list a folder": "os.listdir('/')",
    "make a folder": "os.mkdir(target + '3')",
    "remove a file": "os.unlink(target)",
    "rename a file": "os.rename(target, target + '4')",
    "change a file's mode": "os.chmod(target, 0o777)",
    "shorten a file": "os.truncate(target, 0)",
    "make a link": "os.symlink('/', target + '5')",
    "look at a file": "os.stat(target)",
    "open a tcp socket": "socket.socket()",
    "open a udp socket": "socket.socket(type=socket.SOCK_DGRAM)",
    "open a local socket": "socket.socket(socket.AF_UNIX)",
    "make a pair of sockets": "socket.socketpair()",
    "make a pipe": "os.pipe()",
    "copy a descriptor": "os.dup(0)",
    "fork": "os.fork() or os._exit(0)",
    "start a thread": "threading.Thread(target=int).start()",
    "start a program": "subprocess.run(['/bin/true'])",
    "become a program": "os.execv('/bin/true', ['true'])",
    "signal its parent": "os.kill(os.getppid(), 0)",
    "change its limits": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "change its folder": "os.chdir('/')",
    "load a library": "ctypes.CDLL('libresolv.so.2')",
    "import a module": "import wave",
    "take a gigabyte": "bytearray(1 << 30)",
}


def attempt(action: str, target: Path, *, locked: bool) -> str:
    """What a process says that tries something: done, or the error."""
    lock = "sandbox.lock()" if locked else "pass"
    code = f"""
import ctypes, os, resource, socket, subprocess, sys, threading
from polyseme.legacy import sandbox
target = {str(target)!r}
{lock}
try:
    {action}
    print("done", flush=True)
except (OSError, MemoryError, RuntimeError, ImportError, ValueError) as error:
    print(type(error).__name__, flush=True)
os._exit(0)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.strip() or f"ended with {run.returncode}"


@needs_sandbox
@pytest.mark.parametrize("action", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_what_works_outside_the_sandbox_fails_inside(action: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("here", encoding="utf-8")
    inside = attempt(action, target, locked=True)
    assert inside.endswith("Error")
    assert target.read_text(encoding="utf-8") == "here"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    outside = attempt(action, target, locked=False)
    assert outside == "done" or (action.startswith("os.exec") and outside == "ended with 0")


@needs_sandbox
def test_what_was_open_before_can_be_read_and_the_pipe_written() -> None:
    code = """
import os, sys
from polyseme.legacy import sandbox
stream = open(sys.argv[1], "rb")
sandbox.lock()
stream.seek(5)
print(stream.read().decode(), flush=True)
os._exit(0)
"""
    path = Path(__file__)
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=True)
    assert run.stdout.decode().strip() == path.read_bytes()[5:].decode().strip()


@needs_sandbox
def test_a_process_that_computes_without_end_is_ended() -> None:
    code = (
        "from polyseme.legacy import sandbox; sandbox.SECONDS = 1; sandbox.lock()\nwhile True: pass"
    )
    started = time.monotonic()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert run.returncode < 0
    assert time.monotonic() - started < 30


def test_a_second_thread_would_be_free_and_is_not_tolerated() -> None:
    code = """
import threading
from polyseme.legacy import sandbox
threading.Thread(target=threading.Event().wait, args=(20,), daemon=True).start()
try:
    sandbox.lock()
except sandbox.SandboxError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "2 threads" in run.stdout


def test_the_filter_lets_through_what_is_listed_and_nothing_else() -> None:
    """The filter is run by hand, as the kernel would."""
    for processor, calls in CALLS.values():
        program = make_filter(processor, calls)
        for number in range(500):
            expected = 0x7FFF0000 if number in calls.values() else 0x00050001
            assert run_filter(program, processor, number) == expected
        assert run_filter(program, processor + 1, 0) == 0x80000000
        assert run_filter(program, processor, 0x40000000) == 0x00050001  # another set of numbers


def run_filter(program: bytes, processor: int, number: int) -> int:
    steps = [program[at : at + 8] for at in range(0, len(program), 8)]
    at = loaded = 0
    while True:
        code = int.from_bytes(steps[at][:2], "little")
        value = int.from_bytes(steps[at][4:], "little")
        match code:
            case 0x20:
                loaded = processor if value == 4 else number
            case 0x15:
                at += steps[at][2] if loaded == value else steps[at][3]
            case 0x06:
                return value
        at += 1


def test_no_call_that_opens_starts_or_connects_is_on_the_list() -> None:
    for _, calls in CALLS.values():
        assert not calls.keys() & {"open", "openat", "openat2", "socket", "clone", "clone3", "fork",
                                   "execve", "connect", "ptrace", "prctl", "kill"}  # fmt: skip


@needs_sandbox
def test_the_lock_is_what_holds(tmp_path: Path) -> None:
    """Without Landlock seccomp still forbids opening, and the other way round: two locks."""
    target = tmp_path / "target"
    target.write_text("here", encoding="utf-8")
    for other in (
        "sandbox._close_files = lambda _: None",
        "sandbox.allow_only_computing = lambda _: None",
    ):
        code = (
            f"import os; from polyseme.legacy import sandbox; {other}; sandbox.lock()\n"
            f"try: open({str(target)!r}); print('done', flush=True)\n"
            "except OSError: print('closed', flush=True)\nos._exit(0)"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert run.stdout.strip() == b"closed"
