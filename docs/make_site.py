"""Build the site into `site/`, and finish what the generator cannot say.

    python docs/make_site.py

Pages below `zh/` are marked as Chinese, so that browsers, screen readers and search engines take
them for what they are. The copy button of a console block copies its commands, without prompts and
output. The link to the repository is a link and no more: the theme's script would ask GitHub for
the number of stars whenever a page is opened.
"""

import html
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r'<div class="language-console highlight">(<pre>.*?</pre>)', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def finish(site: Path) -> None:
    """Go through all pages of a built site."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        is_chinese = page.relative_to(site).parts[0] == "zh"
        page.write_text(finish_page(text, is_chinese=is_chinese), encoding="utf-8", newline="\n")
    for script in site.glob("*.py"):  # copied along with the pages they make
        script.unlink()


def finish_page(text: str, *, is_chinese: bool) -> str:
    """One page as it should be."""
    if is_chinese:
        text = text.replace('<html lang="en"', '<html lang="zh-Hans"', 1)
    text = text.replace(' data-md-component="source"', "")
    return _BLOCK.sub(_with_commands, text)


def _with_commands(found: re.Match[str]) -> str:
    """A console block that says what is copied of it; the theme's button asks for it."""
    commands = html.escape(commands_in(html.unescape(_TAG.sub("", found[1]))), quote=True)
    return f'<div class="language-console highlight" data-copy="{commands}">{found[1]}'


def commands_in(block: str) -> str:
    """The commands of a console block: `$ ` begins one, `> ` continues it, the rest is output."""
    lines = [line for line in block.splitlines() if line == ">" or line[:2] in ("$ ", "> ")]
    return "\n".join(line[2:] for line in lines)


def main() -> None:
    """Build, strictly, and finish."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603
    if built.returncode:
        sys.exit(built.returncode)
    finish(ROOT / "site")


if __name__ == "__main__":
    main()
