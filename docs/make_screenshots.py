"""Take the pictures of the explorer that the pages show: docs/images/explorer-*.png.

    make screenshots, or python docs/make_screenshots.py [en] [zh]

Starts `polyseme demo` in English and in Chinese, and looks at it with Debian's Chromium. Needs the
packages playwright and polyseme[explorer], the models, and the demo texts.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
_LONG = 300_000  # milliseconds


@dataclass(frozen=True)
class Picture:
    """What is shown, and how."""

    name: str
    path: str
    waits_for: tuple[str, ...]
    width: int = 1366
    scheme: str = "light"
    press: str = ""
    """What is clicked before the picture is taken."""
    then: str = ""
    """What that brings."""


_WORD = (".block", "#map.ready", ".frequency")
PICTURES = {
    "en": (
        Picture("bank", "/word?q=bank,banks", _WORD),
        Picture("context", "/word?q=bank,banks&group=2", _WORD, press="a.word", then=".context"),
        Picture("compare", "/compare?q=kind&before=year<1860&after=year>=1900", (".verdict",)),
        Picture(
            "score",
            "/score?text=She+sat+on+the+bank+of+the+river.",
            (".scored",),
            press=".scored button:nth-child(5)",
            then="#substitutes li",
        ),
        Picture("phone", "/word?q=bank,banks", _WORD, width=390),
    ),
    "zh": (Picture("zh", "/word?q=走&finer=1", _WORD),),
}


@contextmanager
def demo(language: str, cache: str) -> Iterator[tuple[str, str]]:
    """The demo: where it is, and its token."""
    command = [sys.executable, "-m", "polyseme", "demo", "--language", language]
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*command, "--cache", cache, "--no-browser"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"(http://[\d.:]+)/\S*token=(\S+)", line):
                yield found[1], found[2]
                return
        raise SystemExit("the demo did not start")
    finally:
        process.terminate()
        process.wait()


def let_in(browser: Any, address: str, token: str) -> Any:
    """What a browser has that was let in; the token lets in but one."""
    context = browser.new_context()
    context.new_page().goto(f"{address}/?token={token}")
    return context.storage_state()


def take(browser: Any, address: str, state: Any, picture: Picture) -> None:
    """One picture."""
    size = {"width": picture.width, "height": 860}
    context = browser.new_context(viewport=size, color_scheme=picture.scheme, storage_state=state)
    page = context.new_page()
    page.set_default_timeout(_LONG)
    page.goto(f"{address}{picture.path}")
    for selector in picture.waits_for:
        page.wait_for_selector(selector)
    if picture.press:
        page.click(picture.press)
        page.wait_for_selector(picture.then)
        page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / f"explorer-{picture.name}.png")
    page.context.close()


def main() -> None:
    """All of them."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as cache, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for language in sys.argv[1:] or PICTURES:
            pictures = PICTURES[language]
            with demo(language, cache) as (address, token):
                state = let_in(browser, address, token)
                for picture in pictures:
                    take(browser, address, state, picture)
        browser.close()


if __name__ == "__main__":
    main()
