"""Words by spaCy's rules for a language, each distinct chunk of text looked up once.

spaCy splits what stands between two spaces without looking at its neighbours, so its answer
for a chunk can be kept and used again; English Wikipedia then runs several times faster than
through spaCy's own loop, with the same words (see docs/decisions/0002-words.md). Marks that
the language's rules always split off after a letter are split off here, so that `word`,
`word,` and `"word"` need one answer between them.
"""

import re
import string
from typing import Any

from polyseme.errors import ConfigError
from polyseme.text.segmenters import Words

# A chunk this long, or with this many marks, is a rule, a table or an attack, and spaCy's time
# grows with the square of it. It is split by `_PLAIN` instead.
_LONGEST_CHUNK = 64
_MOST_MARKS = 16
_PLAIN = re.compile(r"\w+|\.{2,}|-{2,}|[^\w\s]")
_MARK = re.compile(r"[^\w\s]")
_ODD_SPACE = re.compile(r"[^\S ]")

# Chunks remembered, in two generations: when the young one is full it becomes the old one, so
# frequent chunks stay and memory is bounded.
_GENERATION = 100_000

_Split = tuple[tuple[str, ...], tuple[int, ...]]


class SpacyRules:
    """spaCy's tokenizer of one language, remembered chunk by chunk."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._reload()
        self._opening = self._marks_always_split_off(before=True)
        self._closing = self._marks_always_split_off(before=False)

    def _reload(self) -> None:
        """A fresh tokenizer: spaCy's own string store only ever grows."""
        self._tokenizer = _blank_tokenizer(self._language)
        self._rules = self._tokenizer.rules
        self._young: dict[str, _Split] = {}
        self._old: dict[str, _Split] = {}
        self._asked = 0

    def split(self, text: str) -> Words:
        """Words and their starts; white space of any kind separates chunks."""
        if _ODD_SPACE.search(text):
            text = _ODD_SPACE.sub(" ", text)  # one for one: the places stay
        words: list[str] = []
        starts: list[int] = []
        place = 0
        young = self._young
        for chunk in text.split(" "):
            if chunk:
                parts, offsets = young.get(chunk) or self._look_up(chunk)
                if len(parts) == 1:
                    words.append(parts[0])
                    starts.append(place)
                else:
                    words.extend(parts)
                    starts.extend([place + offset for offset in offsets])
            place += len(chunk) + 1
        if len(young) > _GENERATION:
            self._old, self._young = young, {}
            if self._asked > 4 * _GENERATION:
                self._reload()
        return Words(words, starts)

    def describe(self) -> dict[str, str]:
        """spaCy's version and the language whose rules are used."""
        import spacy

        return {"name": "spacy", "version": spacy.__version__, "language": self._language}

    def _look_up(self, chunk: str) -> _Split:
        found = self._old.get(chunk) or self._split_chunk(chunk)
        self._young[chunk] = found
        return found

    def _split_chunk(self, chunk: str) -> _Split:
        """The words of a chunk: whole, or a mark and the rest, or as spaCy says."""
        if chunk in self._rules:
            return self._ask(chunk)
        if chunk.isalpha() and chunk.isascii():
            return (chunk,), (0,)
        if len(chunk) > _LONGEST_CHUNK or len(_MARK.findall(chunk)) > _MOST_MARKS:
            matches = list(_PLAIN.finditer(chunk))
            return tuple(m[0] for m in matches), tuple(m.start() for m in matches)
        if chunk[-1] in self._closing and chunk[-2:-1].islower():
            parts, offsets = self._young.get(chunk[:-1]) or self._look_up(chunk[:-1])
            return (*parts, chunk[-1]), (*offsets, len(chunk) - 1)
        if chunk[0] in self._opening and chunk[1:2].isalpha():
            parts, offsets = self._young.get(chunk[1:]) or self._look_up(chunk[1:])
            return (chunk[0], *parts), (0, *(offset + 1 for offset in offsets))
        return self._ask(chunk)

    def _ask(self, chunk: str) -> _Split:
        self._asked += 1
        document = self._tokenizer(chunk)
        return tuple(word.text for word in document), tuple(word.idx for word in document)

    def _marks_always_split_off(self, *, before: bool) -> set[str]:
        """Which marks the language's own patterns split off a word, whatever the word."""
        marks = string.punctuation + "“”‘’«»„‚…"
        if before:
            return {m for m in marks if all(self._prefix(m + w) == 1 for w in _PROBES)}
        return {m for m in marks if all(self._suffix(w + m) == 1 for w in _PROBES)}

    def _prefix(self, text: str) -> int:
        return int(self._tokenizer.find_prefix(text))

    def _suffix(self, text: str) -> int:
        return int(self._tokenizer.find_suffix(text))


_PROBES = ("word", "a", "de", "km", "Wort", "été", "слово", "λόγο", "x2a")


def _blank_tokenizer(language: str) -> Any:
    """spaCy's tokenizer for a language code, if it works by rules on chunks between spaces."""
    import spacy
    from spacy.tokenizer import Tokenizer

    try:
        tokenizer = spacy.blank(language).tokenizer
    except ImportError as error:
        tokenizer = None
        reason = f"spaCy has no rules of its own for the language {language!r} ({error})"
    else:
        reason = f"words in {language!r} are not separated by spaces"
    if type(tokenizer) is not Tokenizer:
        raise ConfigError(
            f"language = {language!r}: {reason}. Use --segmenter whitespace on text you have "
            "segmented, --segmenter characters, or, for Chinese, --segmenter jieba."
        )
    tokenizer.max_cache_size = 0  # chunks are remembered here; twice would be a waste
    return tokenizer
