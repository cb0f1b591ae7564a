"""Texts or lists of words in, sentences with the places of their words out.

Raw text is prepared exactly as the model's corpus was. A list of words is one sentence, taken as it
is. What could silently be taken for something else is refused.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from polyseme.config import build
from polyseme.errors import InputError, ModelError
from polyseme.text.clean import UnfitTextError, clean
from polyseme.text.running import RunningText
from polyseme.text.sentences import split_sentences
from polyseme.text.settings import CorpusConfig


@dataclass(frozen=True, slots=True)
class Given:
    """A sentence as it was given: which text it is of, its words, and where they stand."""

    index: int
    words: Sequence[str]
    starts: tuple[int, ...] | None = None


class Reader:
    """Finds sentences in what was given, by the settings a model carries."""

    def __init__(self, preparation: Mapping[str, Any]) -> None:
        self._preparation = preparation

    def read(self, items: Iterable[Any]) -> Iterator[Given]:
        """The sentences of each text; a list of words is one sentence, even if it is empty."""
        for index, item in enumerate(items):
            if isinstance(item, str):
                yield from self._read_text(item, index)
            else:
                yield Given(index, check_words(item, index))

    def words(self, text: str) -> tuple[str, ...]:
        """The words of all sentences of a text."""
        return tuple(word for found in self.read([text]) for word in found.words)

    @property
    def max_words(self) -> int:
        """The longest sentence that the model's corpus has; longer ones were cut."""
        return self._config.max_words

    def cleaned(self, text: str) -> str:
        """The text that `starts` refer to: as the corpus would store it."""
        try:
            return clean(text, self._config)[0]
        except UnfitTextError as error:
            raise InputError(f"This text cannot be read: {error}. Is it binary data?") from error

    def _read_text(self, text: str, index: int) -> Iterator[Given]:
        try:
            parts = self._running.sentences(text)
        except InputError as error:
            raise InputError(f"Text {index}: {error}") from error
        # Overlong sentences come in the parts they are read in; here they are whole again.
        words = list(chain.from_iterable(parts))
        starts = _places(words, self.cleaned(text))
        for begin, end in split_sentences(words):
            yield Given(index, words[begin:end], tuple(starts[begin:end]))

    @cached_property
    def _running(self) -> RunningText:
        return RunningText(self._settings)

    @cached_property
    def _config(self) -> CorpusConfig:
        return build(CorpusConfig, self._settings["settings"])

    @property
    def _settings(self) -> Mapping[str, Any]:
        if "settings" not in self._preparation:
            raise ModelError(
                "This model does not say how its text was split into words, so it cannot read raw "
                "text. Give lists of words: [['She', 'plays'], ['It', 'rains']]."
            )
        return self._preparation


def check_words(item: Any, index: int) -> Sequence[str]:
    """A sentence as a list of words, or an error that says what else it is."""
    if isinstance(item, str):
        raise InputError(
            f"Sentence {index} is the text {_quote(item)}; a list of words was expected. "
            "Embedder.embed splits text into words."
        )
    if not isinstance(item, Sequence | np.ndarray) or isinstance(item, bytes | bytearray):
        raise InputError(
            f"Text {index} is {_quote(item)}, of type {type(item).__name__}. Give texts as str, "
            "or sentences as lists of str."
        )
    for word in item:
        if not isinstance(word, str) or not word:
            raise InputError(
                f"Sentence {index} has the word {_quote(word)}, of type {type(word).__name__}. "
                "Words are str, and not empty."
            )
    # A copy: whoever gave it may write the next sentence into the same list.
    return [str(word) for word in item]


def refuse_flat(given: Iterator[Given]) -> Iterator[Given]:
    """The same, unless every text is but one word: then the texts are the words of a sentence."""
    held: list[Given] = []
    for sentence in given:
        held.append(sentence)
        if len(sentence.words) != 1 or sentence.starts is None:
            break
        if len(held) > 1 and sentence.index == held[-2].index:
            break
    else:
        if len(held) > 1:
            words = [sentence.words[0] for sentence in held]
            raise InputError(
                f"Each of the {len(held)} texts is one word: {words[:4]}. If they are the words of "
                "one sentence, give [words]; if each is a text of its own, give "
                "[[word] for word in words]."
            )
    yield from held
    yield from given


def _places(words: Sequence[str], text: str) -> list[int]:
    """Where each word begins. Between words is only white space, so the next match is the word."""
    starts, at = [], 0
    for word in words:
        at = text.index(word, at)
        starts.append(at)
        at += len(word)
    return starts


def _quote(value: object) -> str:
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:57]}..."
