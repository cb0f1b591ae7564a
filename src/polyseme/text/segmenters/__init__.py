"""Running text in, words with their places out. One file per way of finding words.

A segmenter is a function of the text alone: it keeps nothing between calls that could change
a result. `describe_segmenter` says what one is, down to versions and dictionaries; that goes
into every corpus and every model, so that text is prepared in use exactly as in training.

Words by one regular expression: Chinese characters, or whatever stands between spaces.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NotRequired, Protocol

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from polyseme.text.settings import SegmenterName


@dataclass(slots=True)
class WordSpans:
    """The words of a text, and where each begins, in characters."""

    words: list[str]
    starts: list[int]


@with_config(ConfigDict(extra="forbid"))
class SegmenterInfo(TypedDict):
    """What decides which words are found, besides the text."""

    name: SegmenterName
    version: str
    language: NotRequired[str]
    """Of spaCy's rules."""
    dictionary: NotRequired[str]
    """SHA-256 of jieba's."""
    user_words: NotRequired[str]
    """SHA-256 of the user's, if there are any; the words are in the settings."""


def in_words(info: Mapping[str, Any]) -> str:
    """What a `SegmenterInfo` means, as part of a sentence; so of none."""
    if not info:
        return "unknown rules"
    names = {
        "spacy": f"spaCy's rules for {info.get('language')!r} ({info['version']})",
        "jieba": f"jieba {info['version']}, dictionary {info.get('dictionary', '')[:8]}",
        "characters": f"single characters (rules {info['version']})",
        "whitespace": f"white space (rules {info['version']})",
    }
    added = f", user words {info['user_words'][:8]}" if "user_words" in info else ""
    return names[info["name"]] + added


class Segmenter(Protocol):
    """What finds words."""

    def split(self, text: str) -> WordSpans:
        """The words of a text in order. White space is never part of a word."""


@lru_cache(maxsize=2)  # loading takes a second; a worker does many shards
def load_segmenter(
    name: SegmenterName, language: str, user_words: tuple[str, ...] = ()
) -> Segmenter:
    """The segmenter of this name, ready to use."""
    match name:
        case "spacy":
            from polyseme.text.segmenters.spacy_rules import SpacyRules

            return SpacyRules(language)
        case "jieba":
            from polyseme.text.segmenters.jieba_words import JiebaWords

            return JiebaWords(user_words)
        case "characters":
            return Characters()
        case "whitespace":
            return Whitespace()


def describe_segmenter(
    name: SegmenterName, language: str, user_words: tuple[str, ...] = ()
) -> SegmenterInfo:
    """Name, version, and the hash of any dictionary: all that decides the results.

    Loads none of it: only the processes that split text pay for that.
    """
    match name:
        case "spacy":
            return {"name": name, "version": version("spacy"), "language": language}
        case "jieba":
            from polyseme.text.segmenters.jieba_words import dictionary_hash, user_words_hash

            dictionary = dictionary_hash()  # first: it says what to install if jieba is missing
            info: SegmenterInfo = {
                "name": name,
                "version": version("jieba"),
                "dictionary": dictionary,
            }
            if user_words:
                info["user_words"] = user_words_hash(user_words)
            return info
        case "characters" | "whitespace":
            return {"name": name, "version": VERSION}


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
