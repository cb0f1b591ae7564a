"""Running text in, words with their places out. One file per way of finding words.

A segmenter is a function of the text alone: it keeps nothing between calls that could change
a result. `describe_segmenter` says what one is, down to versions and dictionaries; that goes
into every corpus and every model, so that text is prepared in use exactly as in training.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from polyseme.text.segmenters.patterns import VERSION, Characters, Segmenter, Whitespace
from polyseme.text.settings import SegmenterName


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
