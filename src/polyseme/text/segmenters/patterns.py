"""Words with their places; found by one regular expression: Chinese characters, or whatever stands
between spaces.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol


@dataclass(slots=True)
class WordSpans:
    """The words of a text, and where each begins, in characters."""

    words: list[str]
    starts: list[int]


class Segmenter(Protocol):
    """What finds words."""

    def split(self, text: str) -> WordSpans:
        """The words of a text in order. White space is never part of a word."""


# Scripts written without spaces: each of their letters is a word. Han with its extensions,
# kana, bopomofo; also the ideographic zero and iteration marks.
_WITHOUT_SPACES = (
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af"
)
SPACELESS = re.compile(rf"[{_WITHOUT_SPACES}，。、；：？！…—（）《》「」『』“”]")
"""A letter or mark of a script written without spaces."""
VERSION = "1"
"""Raise it when a pattern changes: corpora made with the old one must differ."""


@lru_cache
def combining_marks() -> str:
    """Marks on letters, as a character class: Python's `\\w` has é but not e with its accent."""
    # Up to U+FFFF, and the variants of Han: `re` is five times slower with all of those beyond.
    every = map(chr, range(0x300, 0x10000))
    marks = "".join(mark for mark in every if unicodedata.category(mark).startswith("M"))
    return f"[{marks}\U000e0100-\U000e01ef]"


class _Pattern:
    """A segmenter that finds every match of a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def split(self, text: str) -> WordSpans:
        """All matches, in order."""
        words: list[str] = self._pattern.findall(text)
        starts, end = [], 0
        for word in words:
            # Only white space stands between two words, and none begins with it.
            start = text.find(word, end)
            starts.append(start)
            end = start + len(word)
        return WordSpans(words, starts)


class Characters(_Pattern):
    """Each Chinese character or mark is a word; runs of other letters and digits stay whole."""

    def __init__(self) -> None:
        marks = f"{combining_marks()}*"
        run = rf"(?:(?![{_WITHOUT_SPACES}])\w{marks})+"
        # A dot inside a run belongs to it: 3.5, U.S, www.example.org; else it would end a
        # sentence.
        super().__init__(rf"[{_WITHOUT_SPACES}]{marks}|{run}(?:\.{run})*|[^\w\s]{marks}")


class Whitespace(_Pattern):
    """Text already segmented: a word is what stands between white space."""

    def __init__(self) -> None:
        super().__init__(r"\S+")
