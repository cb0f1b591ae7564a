"""A real browser for tests: Chromium of Debian, driven by Playwright."""

from pathlib import Path
from typing import Any

from required import needs

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
LONG = 60_000
"""Milliseconds that any step may take on a busy machine."""

needs_chromium = needs(CHROMIUM.exists(), "chromium, at /usr/bin/chromium")


def launch(playwright: Any, *flags: str) -> Any:
    """A browser without a window."""
    return playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS, *flags])


def complaints_of(page: Any) -> list[str]:
    """A list that gets every error and warning of a page from now on."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "console",
        lambda told: found.append(told.text) if told.type in ("error", "warning") else None,
    )
    return found
