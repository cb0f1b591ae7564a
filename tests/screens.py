"""What a terminal was sent: Rich's own codes taken out, and all else looked at."""

import re
import unicodedata

RED, BOMB = "[red]", ":bomb:"
ALWAYS_SHOWN = (
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
)
HOSTILE = [
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b[31mred\x1b[0m",
    "\x9b2J",
    "a\rb",
    "a\x08b",
    "x\nError: forged",
    "x\x0b\x0c\x85y",
    "abc\u202egpj.exe",
    "\u2066a\u2069\u200e\u200f",
    "\udcff\udc80",
    "\ud83d",
    f"{RED}{BOMB}[/red]",
    "[link=http://evil.example]x[/link]",
    "[/]",
    "\x00\x7f",
    "tab\tbed",
    "\u2028Error: forged\u2029",
]
# Colours; the cursor up, down, to a column; lines erased; the cursor hidden; a line begun again.
_OF_RICH = re.compile(r"\x1b\[[\d;]*m|\x1b\[\d*[ABGK]|\x1b\[\?25[lh]|\r(?=\x1b|\n|$)")
_FRAMES = re.compile(r"[\s\u2500-\u257f]")


def shown_as(text: str) -> str:
    """A text as a reader should see it, worked out character by character."""
    return "".join(map(_shown_as, text))


def _shown_as(character: str) -> str:
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
    if character in named:
        return named[character]
    is_hidden = unicodedata.category(character) in ("Cc", "Cs") or character in ALWAYS_SHOWN
    number = ord(character)
    if not is_hidden:
        return character
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def controls_in(sent: str) -> list[str]:
    """Characters that a terminal obeys, besides Rich's own codes and line ends."""
    rest = _OF_RICH.sub("", sent).replace("\r\n", "\n").replace("\n", "")
    return [character for character in rest if _shown_as(character) != character]


def is_shown(text: str, sent: str) -> bool:
    """Whether every character of a text can be read on the screen, though lines were broken."""
    return _FRAMES.sub("", shown_as(text)) in _FRAMES.sub("", _OF_RICH.sub("", sent))
