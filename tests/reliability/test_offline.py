"""No command opens a connection (L5): each is run without a network, and every call is looked at.

A command has nothing to fetch, so there is no list of good and bad addresses: anything that is
not a socket of this machine's own file system is one too many.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from required import needs

from reliability import traced
from reliability.traced import python

TESTS = Path(__file__).parents[1]
CALLS = "connect,sendto,sendmsg,sendmmsg"
_ADDRESS = re.compile(r"sa_family=(AF_\w+)")
# Netlink asks the kernel of this machine, as a look at the list of interfaces does.
_HARMLESS = {"AF_UNIX", "AF_NETLINK", "AF_UNSPEC"}


def why_not() -> str | None:
    """Why nothing can be run without a network here, or None if it can."""
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return traced.why_not() or (None if tried.returncode == 0 else "unshare --net is not allowed")


needs_namespace = needs(why_not() is None, why_not() or "a network namespace", only_on="linux")


def run_watched(
    command: list[str], folder: Path
) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    """Run a program in a network of nothing; what came of it, and the calls that went out."""
    log = folder / "calls"
    watch = ["unshare", "--net", "strace", "-f", "--seccomp-bpf", "-e", f"trace={CALLS}"]
    done = subprocess.run(
        [*watch, "-o", str(log), *command],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    return done, outgoing(log.read_text(errors="replace"))


def outgoing(log: str) -> list[str]:
    """Lines that name an address beyond this machine's files."""
    return [line for line in log.splitlines() if set(_ADDRESS.findall(line)) - _HARMLESS]


@needs_namespace
@pytest.mark.timeout(600)
def test_no_command_opens_a_connection(tmp_path: Path) -> None:
    done, calls = run_watched(python("reliability.every_command", tmp_path / "work"), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert calls == []
    did = re.findall(r"^did (\S+) 0$", done.stderr, re.MULTILINE)
    there = (TESTS.parent / "src/polyseme/commands").glob("[!_]*")  # a file, or a folder of several
    assert set(did) == {path.stem.replace("_", "-") for path in there} - NOT_WATCHED


NOT_WATCHED = {
    *("push", "pull"),  # what they are for is a connection
    "serve",  # is watched in test_serving.py
    *("demo", "explore"),  # they serve pages: tests/explorer watches what the browser asks for
    "label",  # wants a table that a person has filled in; it does what `senses` does
}
STRAYS = {
    "a name server": "s.sendto(b'?', ('192.0.2.1', 53))",
    "another machine": "s.connect(('192.0.2.1', 80))",
    "this machine": "s.connect(('127.0.0.1', 6379))",
}


@needs_namespace
@pytest.mark.parametrize("stray", STRAYS)
def test_a_child_that_tries_to_connect_is_caught(tmp_path: Path, stray: str) -> None:
    kind = "SOCK_DGRAM" if "sendto" in STRAYS[stray] else "SOCK_STREAM"
    code = f"import socket; s = socket.socket(type=socket.{kind}); {STRAYS[stray]}"
    # The child of a child, as a worker would be.
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    _, calls = run_watched([sys.executable, "-c", parent], tmp_path)
    assert len(calls) == 1
    assert "ENETUNREACH" in calls[0]
