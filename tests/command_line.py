"""The command as a user runs it: words in, exit code and what it printed out.

`polyseme` runs it in this process, which has loaded torch already: a process of its own takes
seconds to do so. `polyseme_process` is for what only a process shows: how it starts, how it ends,
how quick it is. `forked_process` is one, too, in which the libraries are there and Polyseme is not
yet; tests/journeys/test_every_command.py starts every command so.
"""

import atexit
import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO
from unittest.mock import patch

import torch

from polyseme.cli.app import main

Done = subprocess.CompletedProcess[str]
SECONDS_OF_FORKED: list[float] = []
"""Processor seconds of each `forked_process`: the system does not count them as ours."""


def polyseme_process(*words: str | Path, code: int = 0) -> Done:
    """Run `polyseme` in a process of its own; it must end with this exit code."""
    command = [sys.executable, "-m", "polyseme", *map(str, words)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, encoding="utf-8", check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result


def forked_process(*words: str | Path, code: int = 0) -> Done:
    """Run `polyseme` in a process of its own that has the large libraries; without `os.fork`, in a
    new one."""
    if not hasattr(os, "fork"):
        return polyseme_process(*words, code=code)
    server = _fork_server()
    assert server.stdin
    assert server.stdout
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("out", "err")]
        told = {"words": [*map(str, words)], "cwd": str(Path.cwd()), "files": files}
        server.stdin.write(json.dumps({**told, "environment": dict(os.environ)}) + "\n")
        server.stdin.flush()
        told_code, seconds = server.stdout.readline().split()
        SECONDS_OF_FORKED.append(float(seconds))
        printed, complained = (Path(file).read_text(encoding="utf-8") for file in files)
    assert int(told_code) == code, printed + complained
    return Done(["polyseme", *map(str, words)], code, printed, complained)


@cache
def _fork_server() -> "subprocess.Popen[str]":
    """One for all tests of this process; it ends when its input does."""
    command = [sys.executable, str(Path(__file__).with_name("fork_server.py"))]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    atexit.register(server.communicate)
    return server


def polyseme(
    *words: str | Path,
    code: int | None = 0,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    together: bool = False,
) -> Done:
    """Run `polyseme` in this process; it must end with this exit code, unless that is None.

    `environment` is added to this process's own. `together` puts standard error into `stdout`, in
    the order in which they were written.
    """
    argv = ["polyseme", *map(str, words)]
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(tempfile.TemporaryFile("a+b", buffering=0))
        err = out if together else stack.enter_context(tempfile.TemporaryFile("a+b", buffering=0))
        with _as_a_new_process(cwd or Path.cwd(), environment or {}), _printing_to(out, err):
            ended = _exit_code(argv)
        printed, complained = _text(out), "" if together else _text(err)
    assert code is None or ended == code, printed + complained
    return Done(argv, ended, printed, complained)


def _exit_code(argv: list[str]) -> int:
    before = sys.argv
    sys.argv = argv
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    raise AssertionError("the command line always ends by an exit code")


@contextlib.contextmanager
def _printing_to(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Both streams into files, also what libraries and child processes print."""
    streams = sys.stdout, sys.stderr
    kept = os.dup(1), os.dup(2)
    for stream in streams:
        stream.flush()
    try:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = _stream(1), _stream(2)
        yield
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        sys.stdout, sys.stderr = streams
        for number, descriptor in zip(kept, (1, 2), strict=True):
            os.dup2(number, descriptor)
            os.close(number)


def _stream(descriptor: int) -> io.TextIOWrapper:
    """Never closed: a library that is loaded meanwhile may keep it, to log to."""
    return open(descriptor, "w", encoding="utf-8", closefd=False)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8").replace("\r\n", "\n")


@contextlib.contextmanager
def _as_a_new_process(cwd: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """With what a new process begins with; whatever is changed meanwhile is put back."""
    root, threads = logging.getLogger(), torch.get_num_threads()
    handlers, level, disabled = root.handlers, root.level, root.manager.disable
    listeners = {number: signal.getsignal(number) for number in signal.valid_signals()}
    with contextlib.chdir(cwd), patch.dict(os.environ, environment), warnings.catch_warnings():
        warnings.resetwarnings()  # those of pytest are errors, those of a user are shown
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        root.handlers = []
        try:
            yield
        finally:
            root.handlers, root.manager.disable = handlers, disabled
            root.setLevel(level)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            for number, listener in listeners.items():
                if signal.getsignal(number) is not listener:
                    signal.signal(number, listener)
