"""Sentences in, a value for each of their words out: what `prepare --annotate` adds to texts.

Lemmas by word lists and rules of simplemma, which knows a word and no context: `left` is `leave`,
also of a hand. Chinese parts of speech by jieba's dictionary, which knows no context either; those
of other languages come from a trained task, which the command passes in.

What adds a value is part of what a shard is made from, with its version.
"""

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Protocol

from polyseme.errors import ConfigError, extra_needed_for

_REMEMBERED = 1 << 18  # words

Annotate = Callable[[Sequence[Sequence[str]]], Iterable[Sequence[str]]]
"""Words of sentences in, as many values for each sentence out."""


class Annotator(Protocol):
    """What adds an attribute; it travels to the workers, each of which loads it once."""

    @property
    def description(self) -> str:
        """What it is, with its version: all that decides its values."""
        ...

    @property
    def recorded(self) -> dict[str, str]:
        """Its name and its version, or its hash: what the manifest of a corpus says of it."""
        ...

    def load(self) -> Annotate:
        """Ready to work, here."""
        ...


@dataclass(frozen=True)
class Lemmatizer:
    """simplemma's lemmas."""

    language: str

    @property
    def description(self) -> str:
        """The tool and its version."""
        return " ".join(self.recorded.values())

    @property
    def recorded(self) -> dict[str, str]:
        """The same in parts."""
        _simplemma()
        return {"name": "simplemma", "version": version("simplemma")}

    def load(self) -> Annotate:
        """An error if there is nothing for the language."""
        lemmatize = partial(_simplemma().lemmatize, lang=self.language)
        try:
            lemmatize("a")
        except ValueError as error:
            raise ConfigError(
                f"There are no lemmas for --language {self.language}: simplemma has none. Leave "
                "lemma out of --annotate, or give texts that have lemmas, with --word-attributes "
                "lemma."
            ) from error
        return _word_by_word(lemmatize)


@dataclass(frozen=True)
class JiebaTagger:
    """Chinese parts of speech: those of jieba's dictionary, as UPOS.

    A word that is not in the dictionary has the likeliest tag by the hidden Markov model that jieba
    tags unknown words with, here with the word's boundaries given.
    """

    @property
    def description(self) -> str:
        """The tool, its version, and that of the table below."""
        found = self.recorded
        return f"{found['name']} {found['version']}, table {found['table']}"

    @property
    def recorded(self) -> dict[str, str]:
        """The same in parts."""
        _jieba_posseg()
        table = str(_TABLE_VERSION)
        return {"name": "jieba.posseg", "version": version("jieba"), "table": table}

    def load(self) -> Annotate:
        """Reads the dictionary, in half a second."""
        return _word_by_word(_chinese_tags().of)


def _word_by_word(annotate: Callable[[str], str]) -> Annotate:
    """Each word by itself; frequent ones are remembered."""
    remembering = lru_cache(_REMEMBERED)(annotate)
    return lambda sentences: ([*map(remembering, words)] for words in sentences)


def _simplemma() -> Any:
    with extra_needed_for("--annotate lemma"):
        import simplemma
    return simplemma


def _jieba_posseg() -> Any:
    with extra_needed_for("--annotate upos"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its source has escapes newer Pythons complain of
        from jieba import posseg
    return posseg


_TABLE_VERSION = 1
"""Raise it when a word gets another part of speech by the tables below."""
_UPOS = {
    "a": "ADJ", "ad": "ADV", "ag": "ADJ", "an": "NOUN", "b": "ADJ", "c": "CCONJ", "d": "ADV",
    "df": "ADV", "dg": "ADV", "e": "INTJ", "eng": "X", "f": "ADP", "g": "NOUN", "h": "PART",
    "i": "VERB", "j": "NOUN", "k": "PART", "l": "VERB", "m": "NUM", "mg": "NUM", "mq": "NUM",
    "n": "NOUN", "ng": "NOUN", "nr": "PROPN", "nrfg": "PROPN", "nrt": "PROPN", "ns": "PROPN",
    "nt": "PROPN", "nz": "PROPN", "o": "INTJ", "p": "ADP", "q": "NOUN", "r": "PRON", "rg": "PRON",
    "rr": "PRON", "rz": "PRON", "s": "NOUN", "t": "NOUN", "tg": "NOUN", "u": "PART", "ud": "PART",
    "ug": "AUX", "uj": "PART", "ul": "AUX", "uv": "PART", "uz": "AUX", "v": "VERB", "vd": "ADV",
    "vg": "VERB", "vi": "VERB", "vn": "NOUN", "vq": "VERB", "y": "PART", "z": "ADJ", "zg": "NOUN",
}  # fmt: skip
"""jieba's tags as UPOS."""
_CLOSED_CLASSES = {
    "AUX": "是 会 可 能 要 应 须 可以 能够 可能 应该 应当 必须 不会 不能 被 为",
    "DET": "这 那 该 各 每 某 本 其他 其它 这些 那些 任何 所有 一些 许多",
    "PRON": "他 她 它 我 你 您 其 此 自己",
    "NOUN": "年 月 日 岁 元 种 号 点 个",
    "CCONJ": "但 但是 而 而且 并 并且 所以 因此 于是 然而 不过",
    "SCONJ": "因为 由于 虽然 尽管 如果 若 无论 即使 只要",
    "PART": "之 等 们 者",
}
_CLOSED = {word: upos for upos, words in _CLOSED_CLASSES.items() for word in words.split()}
"""Frequent words that UPOS divides otherwise than jieba's tags do."""
_HAN = re.compile(r"[\u4e00-\u9fd5]+")
_NEVER = -3.14e100
"""What jieba takes for the logarithm of 0."""


class _ChineseTags:
    """The part of speech of a Chinese word, whatever is around it."""

    def __init__(self) -> None:
        posseg = _jieba_posseg()
        # A tokenizer of its own: what others did to jieba's global one is left alone.
        self._tags: dict[str, str] = posseg.POSTokenizer(posseg.jieba.Tokenizer()).word_tag_tab
        self._start, self._moves, self._emissions = posseg.start_P, posseg.trans_P, posseg.emit_P
        self._hidden = sorted({tag for _, tag in self._start})

    def of(self, word: str) -> str:
        """As UPOS."""
        if (found := _CLOSED.get(word)) is not None:
            return found
        if (tag := self._tags.get(word)) is None and _HAN.fullmatch(word):
            tag = max(self._hidden, key=partial(self._log_probability, word))
        return _UPOS.get(tag or "", "X") if tag not in (None, "x") else _by_characters(word)

    def _log_probability(self, word: str, tag: str) -> float:
        """Of all its characters being one word of this tag."""
        inner = [("M", tag)] * (len(word) - 2)
        states = [("B", tag), *inner, ("E", tag)] if len(word) > 1 else [("S", tag)]
        total: float = self._start[states[0]]
        for before, state in pairwise(states):
            total += self._moves[before].get(state, _NEVER)
        for state, character in zip(states, word, strict=True):
            total += self._emissions[state].get(character, _NEVER)
        return total


@lru_cache(maxsize=1)
def _chinese_tags() -> _ChineseTags:
    return _ChineseTags()


def _by_characters(word: str) -> str:
    """Of what is no Chinese word: numbers, punctuation, symbols, and X."""
    if any(character.isnumeric() for character in word):
        return "NUM"
    kinds = {unicodedata.category(character)[0] for character in word}
    if "L" in kinds:
        return "X"
    return "SYM" if "S" in kinds else "PUNCT"
