"""Words by one regular expression: Chinese characters, or whatever stands between spaces.

Both patterns are linear in the length of the text.
"""

import re

from polyseme.text.segmenters import Words

# Scripts written without spaces: each of their letters is a word. Han with its extensions,
# kana, bopomofo; also the ideographic zero and iteration marks.
_WITHOUT_SPACES = (
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af"
)
_CHARACTERS = re.compile(rf"[{_WITHOUT_SPACES}]|(?:(?![{_WITHOUT_SPACES}])\w)+|[^\w\s]")
_WHITESPACE = re.compile(r"\S+")


class _Pattern:
    """A segmenter that finds every match of a pattern."""

    name: str
    version = "1"  # raise it when the pattern changes: corpora made with the old one must differ
    pattern: re.Pattern[str]

    def split(self, text: str) -> Words:
        """All matches, in order."""
        matches = list(self.pattern.finditer(text))
        return Words([match[0] for match in matches], [match.start() for match in matches])

    def describe(self) -> dict[str, str]:
        """Name and version of the pattern."""
        return {"name": self.name, "version": self.version}


class Characters(_Pattern):
    """Each Chinese character or mark is a word; runs of other letters and digits stay whole."""

    name = "characters"
    pattern = _CHARACTERS


class Whitespace(_Pattern):
    """Text already segmented: a word is what stands between white space."""

    name = "whitespace"
    pattern = _WHITESPACE
