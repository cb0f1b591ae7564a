"""The site builds without warnings and without a network, and its links lead somewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from required import need_package

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
# What a page loads by itself when it is opened; a plain link to click on is no load.
LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?:)?//[^\s\">]+")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_package("zensical")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py"))
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    result = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "site"


def test_every_page_is_on_the_site(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        page = source.relative_to(ROOT / "docs").with_suffix("")
        target = site / "index.html" if page.name == "index" else site / page / "index.html"
        assert target.is_file(), page


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    for source in (ROOT / "docs").rglob("*.md"):
        assert f'"{source.relative_to(ROOT / "docs").as_posix()}"' in navigation


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = LOADED.search(page.read_text(encoding="utf-8"))
        assert loaded is None, f"{page.relative_to(site)}: {loaded and loaded[0]}"


def test_links_between_files_lead_to_files() -> None:
    """Also those of README and its neighbours, which are not on the site."""
    for source in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in LINK.findall(source.read_text(encoding="utf-8")):
            path, _ = urldefrag(link)
            if path and "://" not in path:
                assert (source.parent / unquote(path)).exists(), f"{source.name}: {link}"
