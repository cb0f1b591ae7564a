"""How long `polyseme demo` takes from the command to groups on the page, and the server's memory.

    python benchmarks/demo.py [en|zh]
    python benchmarks/demo.py [en|zh] --many

Cold: nothing is prepared yet. Warm: the second start, the texts prepared by the first. Then other
words are searched for, and the time is taken until their first lines, and until their groups, are
on the page. Chromium and the server share the machine, as they do for a user. With --many, thirty
words are searched for one after another instead, and the server's memory is looked at after each.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
WORDS = {"en": ["bank", "play", "spring", "train"], "zh": ["道", "打", "行", "走"]}
MANY = {
    "en": "bank play spring train hand head line order part point case kind state turn matter "
    "sense mind letter board cross fair match ring note light right left post time man",
    "zh": "道 打 行 走 人 说 来 事 心 手 头 生 死 水 火 "
    "山 天 地 马 车 书 言 门 王 家 国 气 身 日 月",
}
LINES, GROUPS = ".line", ".band"


@contextmanager
def demo(language: str, cache: str) -> Iterator[tuple[str, int]]:
    """A running demo: the address it prints and the number of its process."""
    command = ["polyseme", "demo", "--language", language, "--no-browser", "--cache", cache]
    server = subprocess.Popen(
        [*command, "--idle", "10"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout is not None
    try:
        for line in server.stdout:
            if address := re.search(r"http://127\.0\.0\.1\S+", line):
                yield address[0], server.pid
                break
        else:
            raise SystemExit("the demo ended without an address")
    finally:
        server.terminate()
        server.wait()


def memory(pid: int, what: str = "VmHWM") -> int:
    """Most megabytes the process has held so far; with "VmRSS", those it holds now."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if what in line]
    return int(line.split()[1]) // 1024


def measure_many(language: str) -> dict[str, Any]:
    """Megabytes of the server after each of thirty words, when its map is drawn."""
    from playwright.sync_api import sync_playwright

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(300_000)
        with demo(language, cache) as (address, pid):
            page.goto(address)
            at = urlsplit(address)
            for word in MANY[language].split():
                page.goto(f"{at.scheme}://{at.netloc}/word?q={quote(word)}")
                page.wait_for_selector(f"{GROUPS}, .note, .problem")  # or too few uses, or none
                if page.query_selector(GROUPS):
                    page.wait_for_selector("#map.ready")
                time.sleep(0.5)
                found[word] = memory(pid, "VmRSS")
                print(word, found[word], file=sys.stderr)
            found["most"] = memory(pid)
        browser.close()
    return found


def measure(language: str) -> dict[str, Any]:
    """Seconds since the command, or since the search; megabytes."""
    from playwright.sync_api import Page, sync_playwright

    def seen(page: Page, address: str, since: float) -> dict[str, float]:
        page.goto(address)
        page.wait_for_selector(LINES, timeout=120_000)
        lines = time.perf_counter() - since
        page.wait_for_selector(GROUPS, timeout=120_000)
        return {"first_lines": lines, "groups": time.perf_counter() - since}

    found: dict[str, Any] = {"cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as cache, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for start in ["cold", "warm"]:
            page = browser.new_page()
            began = time.perf_counter()
            with demo(language, cache) as (address, pid):
                printed = time.perf_counter() - began
                found[start] = {"address": printed, **seen(page, address, began)}
                if start == "warm":
                    at = urlsplit(address)
                    for word in WORDS[language]:
                        search = f"{at.scheme}://{at.netloc}/word?q={quote(word)}"
                        found[word] = seen(page, search, time.perf_counter())
                found[start]["server_mb"] = memory(pid)
            page.close()
        browser.close()
    return found


if __name__ == "__main__":
    languages = [word for word in sys.argv[1:] if not word.startswith("-")]
    measured = measure_many if "--many" in sys.argv else measure
    figures = measured(languages[0] if languages else "en")
    print(json.dumps(figures, indent=2, ensure_ascii=False))
