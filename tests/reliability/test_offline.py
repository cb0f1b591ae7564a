"""No command opens a connection (L5), or writes into a folder that is read-only: that ends in one
sentence. Each is run without a network, and every call is looked at.

A command has nothing to fetch, so there is no list of good and bad addresses: anything that is
not a socket of this machine's own file system is one too many.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from required import need, needs

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


Ran = tuple[Path, "subprocess.CompletedProcess[str]", list[str]]
"""The folder of all commands, what came of them, and the calls that went out."""


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    """The folder of all commands, what came of them, and the calls that went out."""
    need(os.geteuid() != 0 or shutil.which("setpriv") is not None, "setpriv, to give up a right")
    # Root may write everywhere by these two rights; files of root keep others out without them.
    rights = "--bounding-set=-dac_override,-dac_read_search"
    first = ["setpriv", rights] if os.geteuid() == 0 else []
    folder = tmp_path_factory.mktemp("all")
    command = [*first, *python("reliability.every_command", folder / "work")]
    return folder / "work", *run_watched(command, folder)


@needs_namespace
@pytest.mark.timeout(600)
def test_no_command_opens_a_connection(
    ran: Ran,
) -> None:
    _, done, calls = ran
    assert done.returncode == 0, done.stdout + done.stderr
    assert calls == []
    did = re.findall(r"^did (\S+) 0$", done.stderr, re.MULTILINE)
    there = (TESTS.parent / "src/polyseme/commands").glob("[!_]*")  # a file, or a folder of several
    assert set(did) == {path.stem.replace("_", "-") for path in there} - NOT_WATCHED


@needs_namespace
@pytest.mark.timeout(600)
def test_no_command_writes_into_a_folder_that_is_read_only(
    ran: Ran,
) -> None:
    folder, done, _ = ran
    lines = re.findall(r"^locked (.*)$", done.stdout, re.MULTILINE)
    *refused, last = map(json.loads, lines)
    locked = folder / "locked"
    locked.chmod(stat.S_IRWXU)
    assert [path.name for path in locked.iterdir()] == ["mine.txt"]
    assert len(refused) == 22
    for each in refused:
        told = " ".join(each["stderr"].split()).partition("Error: ")[2]
        story = f"{each['words']}\n{each['stderr']}"
        assert each["code"] == 77, story
        assert told.startswith(str(locked)), story
        assert "cannot be read or written by this user: Permission denied." in told, story
        assert ".work" not in told, story
        assert ".lock " not in told, story
    assert last["code"] == 0, last["stderr"]


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


def test_what_only_we_put_into_a_folder_is_not_named() -> None:
    from polyseme.cli.faults import explain

    for inside in (".work", ".work/a.lock", ".lock", ""):
        error = PermissionError(13, "Permission denied", str(Path("/mine/out") / inside))
        assert str(explain(error)).startswith("/mine/out cannot be read or written by this user")
