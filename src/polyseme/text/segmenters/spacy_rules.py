"""Words by spaCy's rules for a language, each distinct chunk of text looked up once.

spaCy splits what stands between two spaces without looking at its neighbours, so its answer
for a chunk can be kept and used again; English Wikipedia then runs more than twice as fast as
through spaCy's own loop, with the same words (see docs/decisions/0002-words.md). Marks that
the language's own rules always split off are split off here, so that `word`, `word,` and
`"word"` need one answer between them. The few rules that hold a space, such as Spanish
`EE. UU.`, are left out: white space is never part of a word.
"""

import difflib
import re
import string
from pathlib import Path
from typing import Any

from polyseme.errors import ConfigError
from polyseme.text.segmenters.patterns import WordSpans, combining_marks

# A chunk this long, or with this many marks, is a rule, a table or an attack, and spaCy's time
# grows with the square of it. It is split plainly instead: at every mark.
_LONGEST_CHUNK = 64
_MOST_MARKS = 16
_LANGUAGE_CLASS = re.compile(r"^class (\w+)\(Language\):", re.MULTILINE)
_ODD_SPACE = re.compile(r"[^\S ]")

# Chunks remembered, in two generations: when the young one is full it becomes the old one, so
# frequent chunks stay and memory is bounded (four times as many were 5 % faster and 100 MB more).
_GENERATION = 50_000

# A mark is split off without asking if the language's patterns split it off all of these. What
# stands before the mark decides: no language treats `word.`, `A.` and `3.` alike.
_PROBES = {
    "lower": ("word", "a", "de", "km", "été", "слово", "λόγο"),
    "upper": ("NATO", "A", "Ab", "XII"),
    "digit": ("1990", "3", "2,5", "a1"),
    "mark": ("word)", 'word"', "word]", "word”", "1990)"),
    "stop": ("word.", "word,", "word!", "word?", "word;", "word:", "A.", "1990."),
}
_CLOSERS = frozenset(')"]”’»')
_STOPS = frozenset(".,!?;:")
_MARKS = string.punctuation + "“”‘’«»„‚…"

_Split = tuple[tuple[str, ...], tuple[int, ...]]


class SpacyRules:
    """spaCy's tokenizer of one language, remembered chunk by chunk."""

    def __init__(self, language: str) -> None:
        self._language = language
        accents = f"{combining_marks()}*"
        self._plain = re.compile(rf"(?:\w{accents})+|\.{{2,}}|-{{2,}}|[^\w\s]{accents}")
        self._mark = re.compile(rf"(?!{combining_marks()})[^\w\s]|_")
        self._reload()
        self._opening = self._always_opening()
        self._closing = {name: self._always_closing(words) for name, words in _PROBES.items()}
        self._closing[""] = frozenset()

    def _reload(self) -> None:
        """A fresh tokenizer: spaCy's own string store only ever grows."""
        self._tokenizer = _blank_tokenizer(self._language)
        self._rules = self._tokenizer.rules
        self._young: dict[str, _Split] = {}
        self._old: dict[str, _Split] = {}
        self._asked = 0

    def split(self, text: str) -> WordSpans:
        """Words and their starts; white space of any kind separates chunks."""
        if _ODD_SPACE.search(text):
            text = _ODD_SPACE.sub(" ", text)  # one for one: the places stay
        words: list[str] = []
        starts: list[int] = []
        place = 0
        remembered = self._young.get
        for chunk in text.split(" "):
            if chunk:
                parts, offsets = remembered(chunk) or self._look_up(chunk)
                if len(parts) == 1:
                    words.append(parts[0])
                    starts.append(place)
                else:
                    words.extend(parts)
                    starts.extend([place + offset for offset in offsets])
            place += len(chunk) + 1
        if self._asked > 4 * _GENERATION:
            self._reload()
        return WordSpans(words, starts)

    def _look_up(self, chunk: str) -> _Split:
        # The young first: the generations may have changed within one long text.
        found = self._young.get(chunk) or self._old.get(chunk) or self._split_chunk(chunk)
        if len(self._young) >= _GENERATION:
            self._old, self._young = self._young, {}
        self._young[chunk] = found
        return found

    def _split_chunk(self, chunk: str) -> _Split:
        """The words of a chunk: itself, or a mark and the rest, or as spaCy says."""
        if chunk in self._rules:
            return self._ask(chunk)
        if chunk.isascii() and (chunk.isalpha() or chunk.isdigit()):
            return (chunk,), (0,)
        if len(chunk) > _LONGEST_CHUNK or len(self._mark.findall(chunk)) > _MOST_MARKS:
            matches = list(self._plain.finditer(chunk))
            return tuple(m[0] for m in matches), tuple(m.start() for m in matches)
        if chunk[0] in self._opening and chunk[1:2].isalnum():
            parts, offsets = self._look_up(chunk[1:])
            # Not where the mark makes a word of the rules with what it touches: `'s` in `'s,`.
            if not any(chunk[: offset + 1] in self._rules for offset in offsets[1:4]):
                return (chunk[0], *parts), (0, *(offset + 1 for offset in offsets))
        if chunk[-1] in self._closing[_class_of(chunk[-2:-1])]:
            parts, offsets = self._look_up(chunk[:-1])
            # Nor here: `):` in `word):`, `etc.` in `and/etc.`.
            if not any(chunk[offset:] in self._rules for offset in offsets[-3:]):
                return (*parts, chunk[-1]), (*offsets, len(chunk) - 1)
        return self._ask(chunk)

    def _ask(self, chunk: str) -> _Split:
        self._asked += 1
        document = self._tokenizer(chunk)
        return tuple(word.text for word in document), tuple(word.idx for word in document)

    def _always_closing(self, probes: tuple[str, ...]) -> frozenset[str]:
        """Marks the language's patterns split off the end of all these words, by themselves."""
        find = self._tokenizer.find_suffix
        return frozenset(m for m in _MARKS if all(find(word + m) == 1 for word in probes))

    def _always_opening(self) -> frozenset[str]:
        """Marks the language's patterns split off before any word, by themselves."""
        find = self._tokenizer.find_prefix
        words = [word for name in ("lower", "upper", "digit") for word in _PROBES[name]]
        return frozenset(m for m in _MARKS if all(find(m + word) == 1 for word in words))


def _class_of(character: str) -> str:
    """Which of `_PROBES` a character belongs to; "" for those nothing is known of."""
    if character.islower():
        return "lower"
    if character.isupper():
        return "upper"
    if character.isdigit():
        return "digit"
    if character in _STOPS:
        return "stop"
    return "mark" if character in _CLOSERS else ""


def _blank_tokenizer(language: str) -> Any:
    """spaCy's tokenizer for a language code, if it works by rules on chunks between spaces."""
    import spacy
    from spacy.tokenizer import Tokenizer

    try:
        tokenizer: Any = spacy.blank(language).tokenizer
    except ImportError:
        tokenizer = None
    if type(tokenizer) is not Tokenizer:
        raise ConfigError(
            f"--language {language} is not a code that spaCy has rules for.{_nearest(language)} "
            "For a language without rules, or written without spaces: --segmenter whitespace on "
            "text you have segmented, --segmenter characters, or, for Chinese, --segmenter jieba."
        )
    tokenizer.max_cache_size = 0  # chunks are remembered here; twice would be a waste
    return tokenizer


def _nearest(language: str) -> str:
    """The code that was probably meant, by spaCy's own list of codes and names of languages."""
    from importlib.util import find_spec

    found = find_spec("spacy.lang")
    folder = Path(next(iter(found.submodule_search_locations or ()))) if found else Path()
    codes = {path.parent.name: path for path in folder.glob("*/__init__.py")}
    names = {
        name.lower(): code
        for code, path in codes.items()
        for name in _LANGUAGE_CLASS.findall(path.read_text(encoding="utf-8"))
    }
    known = {code: code for code in codes} | names
    near = difflib.get_close_matches(language.lower(), known, n=1, cutoff=0.5)
    return f" Did you mean {known[near[0]]}?" if near else f" Known: {', '.join(sorted(codes))}."
