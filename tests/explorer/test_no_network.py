"""The explorer where there is no network at all but this machine's own: it lacks nothing.

In a network namespace of its own with loopback alone, the server and Chromium go from a search to
groups to the map. Whatever asked for an address elsewhere would fail there, and be told.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chromium import LONG, complaints_of, launch, needs_chromium
from required import need

TESTS = Path(__file__).parents[1]


def namespace_command() -> list[str]:
    """What starts a command without a network: as root, or as a user who may make namespaces."""
    for options in (["--net"], ["--user", "--map-root-user", "--net"]):
        command = ["unshare", *options]
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], check=False).returncode
        ):
            return command
    return []


@needs_chromium
@pytest.mark.timeout(300)
def test_search_groups_and_map_need_no_network_but_loopback(tmp_path: Path) -> None:
    command = namespace_command()
    need(bool(command), "unshare --net, which a container may forbid", only_on="linux")
    done = subprocess.run(
        [*command, sys.executable, "-m", "explorer.test_no_network", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["interfaces"] == ["lo"]
    assert told["elsewhere"] == "Network is unreachable"  # the control: there is no way out
    assert told["groups"] >= 1
    assert told["points"] == 84
    assert told["failed"] == told["complaints"] == []
    assert told["hosts"] == ["127.0.0.1"]
    assert set(told["files"]) >= {"map.js", "explorer.js", "style.css", "htmx.min.js"}


def walk(folder: Path) -> dict[str, object]:
    """In the namespace: serve, search, read, and say what was asked for."""
    from urllib.parse import urlsplit

    from meanings.test_named_groups import MODEL
    from playwright.sync_api import sync_playwright

    from explorer.making import make_bank_corpus
    from explorer.test_browser import serving
    from polyseme.explorer.workspace import Workspace

    asked: list[str] = []
    failed: list[str] = []
    workspace = Workspace(make_bank_corpus(folder), str(MODEL), folder / "notes")
    with serving(workspace) as served, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.set_default_timeout(LONG)
        complaints = complaints_of(page)
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.goto(f"{served.address}/?token={served.guard.new_code()}")
        page.fill("#q", "bank")
        page.press("#q", "Enter")
        page.wait_for_selector(".block")
        page.wait_for_selector("#map.ready")
        page.wait_for_selector(".frequency")
        groups = len(page.query_selector_all(".block"))
        points = page.evaluate("document.querySelector('#map').map.number")
        browser.close()
    parts = [urlsplit(url) for url in asked]
    return {
        "groups": groups,
        "points": points,
        "hosts": sorted({part.hostname or "" for part in parts}),
        "files": sorted({Path(part.path).name for part in parts}),
        "failed": failed,
        "complaints": complaints,
    }


def raise_loopback() -> None:
    """As `ip link set lo up`."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up_and_running = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(control, 0x8914, up_and_running)  # SIOCSIFFLAGS


def try_elsewhere() -> str:
    """What comes of a connection to an address of no one (RFC 5737)."""
    import socket

    try:
        socket.create_connection(("192.0.2.1", 80), timeout=5).close()
    except OSError as error:
        return error.strerror or str(error)
    return "connected"


if __name__ == "__main__":
    import socket

    raise_loopback()
    interfaces = [name for _, name in socket.if_nameindex()]
    outside = {"interfaces": interfaces, "elsewhere": try_elsewhere()}
    print(json.dumps({**outside, **walk(Path(sys.argv[1]))}))
