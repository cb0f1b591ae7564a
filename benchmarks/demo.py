"""How long `polyseme demo` takes from the command to groups on the page, and the server's memory.

    python benchmarks/demo.py [en|zh]
    python benchmarks/demo.py [en|zh] --many [200]

Cold: nothing is prepared yet. Warm: the second start, the texts prepared by the first. Then other
words are searched for, and the time is taken until their first lines, and until their groups, are
on the page. Chromium and the server share the machine, as they do for a user. With --many, so many
different words of the corpus, frequent and rare, are opened one after another instead, without a
browser, each until its groups and its map are there; and the server's memory is printed.
"""

import json
import os
import random
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
from urllib.request import HTTPCookieProcessor, build_opener

import pyarrow.parquet as pq

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
WORDS = {"en": ["bank", "play", "spring", "train"], "zh": ["道", "打", "行", "走"]}
USES = 60, 6_000  # of words that are opened with --many
LONGEST = 300  # seconds that one of them may take
LINES, GROUPS = ".line", ".block"


@contextmanager
def demo(language: str, cache: str) -> Iterator[tuple[str, int]]:
    """A running demo: the address it prints and the number of its process."""
    command = [sys.executable, "-m", "polyseme", "demo", "--language", language, "--no-browser"]
    command += ["--cache", cache]
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


def memory(pid: int) -> int:
    """Most megabytes the process has held so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def memory_now(pid: int) -> dict[str, int]:
    """Megabytes it holds now: all, its own, and of mapped files, most of them libraries."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    names = "Rss:", "Anonymous:"
    every, own = (int(rollup.split(name)[1].split()[0]) >> 10 for name in names)
    return {"resident": every, "anonymous": own, "files": every - own}


def some_words(cache: str, number: int) -> list[str]:
    """Words of the demo's corpus of all frequencies, in an order that mixes them."""
    [vocabulary] = Path(cache).glob("*/corpus-*/vocabulary.parquet")
    counts = pq.read_table(vocabulary).to_pydict()
    pairs = zip(counts["word"], counts["count"], strict=True)
    words = [word for word, count in pairs if USES[0] <= count <= USES[1] and word.isalpha()]
    chosen = words[:: max(1, len(words) // number)][:number]
    random.Random(1).shuffle(chosen)
    return chosen


def measure_many(language: str, number: int, cache: str) -> Iterator[dict[str, Any]]:
    """After each of so many words, when its map is drawn: the server's memory; seconds until its
    lines, and until its map."""
    opener = build_opener(HTTPCookieProcessor())
    with demo(language, cache) as (address, pid):
        opener.open(address).read()
        at = urlsplit(address)
        for word in some_words(cache, number):
            began = time.perf_counter()

            def ask(page: str, q: str = quote(word)) -> bytes:
                found: bytes = opener.open(f"{at.scheme}://{at.netloc}/{page}?q={q}").read()
                return found

            ask("word")
            lines = time.perf_counter() - began
            while json.loads(ask("map"))["state"] == "waiting":
                assert time.perf_counter() - began < LONGEST, word
                time.sleep(0.05)
            drawn = time.perf_counter() - began
            ask("word")
            time.sleep(0.1)  # the thread that drew it hands back what it freed
            yield {"word": word, "lines": lines, "map": drawn, **memory_now(pid)}


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
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    language = next((word for word in words if not word.isdecimal()), "en")
    if "--many" in sys.argv:
        number = next((int(word) for word in words if word.isdecimal()), 200)
        with tempfile.TemporaryDirectory() as cache:
            for row in measure_many(language, number, cache):
                print(json.dumps(row, ensure_ascii=False), flush=True)
    else:
        print(json.dumps(measure(language), indent=2, ensure_ascii=False))
