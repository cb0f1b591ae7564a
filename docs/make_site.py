"""Build the site into `site/`, and finish what the generator cannot say.

    python docs/make_site.py

Pages below `zh/` are marked as Chinese, so that browsers, screen readers and search engines take
them for what they are, and what the theme says on them is Chinese, too. The copy button of a
console block copies its commands, without prompts and output. A heading in Chinese keeps its
letters in its address. The link to the repository is a link and no more: the theme's script would
ask GitHub for the number of stars whenever a page is opened.
"""

import html
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r'<div class="language-console highlight">(<pre>.*?</pre>)', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_SHORT = re.compile(r"<code>([^<>]{1,24})</code>")
_PRE = re.compile(r"(<pre>.*?</pre>)", re.DOTALL)
# Between Chinese characters or punctuation, a line end of the source would be shown as a space.
_LINE_END = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")


# What the theme says by itself, for readers of the Chinese pages.
_CHINESE = {"On this page": "本页内容", "Previous": "上一页", "Next": "下一页", "Search": "搜索"}
_THEME = re.compile(rf"(>\s*)({'|'.join(_CHINESE)})(\s*<)")


def anchors() -> Callable[[str, str], str]:
    """What makes the address of a heading; `zensical.toml` names this function.

    By default letters other than ASCII are left out, and a heading in Chinese gets a bare number.
    The slugs of pymdownx keep them, but would change addresses of English headings.
    """
    from markdown.extensions.toc import slugify_unicode

    return slugify_unicode


def build(folder: Path) -> None:
    """From the pages and settings of a folder into its `site`, strictly, and finish."""
    here = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(here)}
    done = subprocess.run(command, cwd=folder, env=environment, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(done.returncode)
    finish(folder / "site")


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
        text = "".join(_join_lines(part) for part in _PRE.split(text))
        text = _THEME.sub(lambda found: found[1] + _CHINESE[found[2]] + found[3], text)
    text = text.replace(' data-md-component="source"', "")
    text = "".join(_mark_short(part) for part in _PRE.split(text))
    return _BLOCK.sub(_with_commands, text)


def _join_lines(part: str) -> str:
    return part if part.startswith("<pre>") else _LINE_END.sub("", part)


def _mark_short(part: str) -> str:
    """Browsers would break `--set` after its first hyphen; site.css keeps what is marked whole."""
    return part if part.startswith("<pre>") else _SHORT.sub(r'<code class="short">\1</code>', part)


def _with_commands(found: re.Match[str]) -> str:
    """A console block that says what is copied of it; the theme's button asks for it."""
    commands = html.escape(commands_in(html.unescape(_TAG.sub("", found[1]))), quote=True)
    return f'<div class="language-console highlight" data-copy="{commands}">{found[1]}'


def commands_in(block: str) -> str:
    """The commands of a console block: `$ ` begins one, `> ` continues it, the rest is output."""
    lines = [line for line in block.splitlines() if line == ">" or line[:2] in ("$ ", "> ")]
    return "\n".join(line[2:] for line in lines)


if __name__ == "__main__":
    build(ROOT)
