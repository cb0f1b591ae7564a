"""How a browser gets in, and what others on the machine and the browser's own history learn of it.

All in a real Chromium: whether it obeys redirects, keeps cookies and writes a history as we think
is the browser's to say.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from chromium import CHROMIUM, FLAGS, LONG, needs_chromium
from meanings.test_named_groups import MODEL
from required import need

from polyseme.explorer.workspace import Workspace

from .making import make_bank_corpus
from .test_browser import Served, playwright, serving

__all__ = ["playwright"]
pytestmark = [needs_chromium, pytest.mark.timeout(300)]
OTHER = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
"""Another user of the machine, as far as we may be one."""
CODE = re.compile(rb"token=([\w-]{20,})")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = Path(tmp_path_factory.mktemp("opening"))
    with serving(Workspace(make_bank_corpus(folder), str(MODEL), folder / "notes")) as found:
        yield found


def run_as_other(*command: str | Path) -> "subprocess.CompletedProcess[bytes]":
    found: subprocess.CompletedProcess[bytes] = subprocess.run(
        command, capture_output=True, check=False, **OTHER
    )  # type: ignore[call-overload]
    return found


class Watch(threading.Thread):
    """Another user who looks at the list of processes, again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.is_set():
            listed = run_as_other("ps", "-eww", "-o", "args").stdout
            self.seen = self.seen | set(listed.decode(errors="replace").splitlines())

    def __enter__(self) -> "Watch":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self.join()


@contextmanager
def explorer_process(tmp_path: Path, browser: str) -> Iterator[str]:
    """`polyseme explore` as a user starts it; the address that it prints."""
    corpus = make_bank_corpus(tmp_path).folder
    command = [sys.executable, "-m", "polyseme", "explore", str(corpus), "--model", str(MODEL)]
    process = subprocess.Popen(
        [*command, "--word", "bank"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "BROWSER": browser, "COLUMNS": "400"},
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\S+", line):
                yield found[0]
                break
        else:
            pytest.fail("the explorer printed no address")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 0


@contextmanager
def opened_page(playwright: Any, profile: Path) -> Iterator[Any]:
    """The page that a Chromium of this profile was started with, once it shows lines."""
    for _ in range(600):
        if (profile / "DevToolsActivePort").exists():
            break
        time.sleep(0.1)
    port = (profile / "DevToolsActivePort").read_text().split()[0]
    browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
    try:
        [page] = browser.contexts[0].pages
        page.set_default_timeout(LONG)
        page.wait_for_selector(".line")
        yield page
    finally:
        browser.new_browser_cdp_session().send("Browser.close")


def test_no_other_user_learns_the_token_from_the_browser_that_is_opened(
    playwright: Any, tmp_path: Path
) -> None:
    need(shutil.which("ps") is not None, "ps", only_on="linux")
    profile = tmp_path / "profile"
    options = [*FLAGS, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    browser = " ".join([str(CHROMIUM), *options, "%s"])
    with (
        Watch() as other,
        explorer_process(tmp_path, browser) as address,
        opened_page(playwright, profile) as page,
    ):
        assert urlsplit(page.url).query == "q=bank"  # the word is open, and no token in sight
        [given] = {
            match[0] for line in other.seen for match in re.finditer(r"file://\S+\.html", line)
        }
        file = Path(unquote(urlsplit(given).path))
        [code] = CODE.findall(file.read_bytes())
        [printed] = CODE.findall(address.encode())
        tried = run_as_other("cat", file)
        assert not OTHER or (tried.returncode, tried.stdout) == (1, b"")
        assert file.stat().st_mode & 0o077 == 0
        with httpx.Client() as stranger:  # what the browser used is used up
            assert stranger.get(address.replace(printed.decode(), code.decode())).status_code == 403
    told = "\n".join(other.seen)
    assert str(file) in told  # the control: this is what others see of it
    assert code.decode() not in told
    assert printed.decode() not in told
    assert not file.exists()


def test_the_history_of_a_browser_lets_nobody_in(
    playwright: Any, served: Served, tmp_path: Path
) -> None:
    context = playwright.chromium.launch_persistent_context(
        str(tmp_path), executable_path=str(CHROMIUM), args=FLAGS
    )
    page = context.new_page()
    page.set_default_timeout(LONG)
    code = served.guard.new_code()
    page.goto(f"{served.address}/word?q=bank&token={code}")
    page.wait_for_selector(".block")
    page.wait_for_selector("#map.ready")
    assert page.url == f"{served.address}/word?q=bank"
    page.click(".block h2 a")
    page.wait_for_url(re.compile("group="))
    page.go_back()
    assert page.url == f"{served.address}/word?q=bank"
    again = context.new_page()
    again.goto(f"{served.address}/word?q=bank&token={served.guard.new_code()}")
    context.close()  # which writes the history
    kept = {
        found.decode()
        for path in tmp_path.rglob("*")
        if path.is_file()
        for found in CODE.findall(path.read_bytes())
    }
    assert (
        code in kept
    )  # the control: it is kept, though no page of that address was ever word_page
    for each in kept:
        assert httpx.get(f"{served.address}/word?q=bank&token={each}").status_code == 403
