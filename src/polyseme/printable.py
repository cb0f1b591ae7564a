"""Text as a terminal may show it: control characters are shown as escapes, not obeyed.

A file name, a word or a label may hold escape sequences, line ends or characters that turn the
direction of writing. Raw, they would forge messages or hide what is there. Everything that is
printed is made of what comes from here; `terminal.py` sees to it.
"""

import json
import re
from typing import Any

from rich.text import Text

# C0, DEL and C1; soft hyphen, zero-width and bidirectional controls; line and paragraph separators;
# byte-order mark, annotations, tags; lone surrogates, as which Python carries bytes of file names
# that are not UTF-8. Not U+200C and U+200D: Persian, Indic scripts and emoji are spelt with them.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """`text` on one line, each control character in it as Python would write it: `\\x1b`."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def json_line(value: Any) -> str:
    """A value as JSON on one line, its control characters escaped as JSON does: `\\u00ad`."""
    # All of them stand inside strings, where an escape means the character.
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


class PrintableText(Text):
    """Rich's text with styles, of printable characters only. Rich's own drops some controls."""

    def __init__(self, text: str = "", *styles: Any, **options: Any) -> None:
        super().__init__(printable(text), *styles, **options)

    def append(self, text: Text | str, style: Any = None) -> "PrintableText":
        """Add a stretch of text in a style."""
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self
