"""What stands in the fenced blocks of a page of the documents."""

import re
import shlex
from pathlib import Path

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""The language of a block, and what is in it."""


def blocks(page: Path, language: str) -> list[str]:
    """All of a page in one language, as `sh`."""
    text = page.read_text(encoding="utf-8")
    return [code for kind, code in FENCE.findall(text) if kind == language]


def commands_in(block: str) -> list[list[str]]:
    """The words of each `polyseme` of a block, as a shell would pass them on."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word and set(word) <= set("|&;<>"):
                if "polyseme" in words:
                    found.append(words[words.index("polyseme") + 1 :])
                words = []
            else:
                words.append(word)
    return found
