"""Texts or lists of words in, sentences with the offsets of their words out.

Raw text goes the one path of all text. A list of words is one sentence, taken as it is. What could
silently be taken for something else is refused.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.text.preprocessing import PreprocessedText


@dataclass(frozen=True, slots=True)
class InputSentence:
    """A sentence as it was given: which text it is of, its words, and where they stand."""

    index: int
    words: Sequence[str]
    starts: tuple[int, ...] | None = None


def read_sentences(
    items: Iterable[Any], preprocess: Callable[[str], PreprocessedText], first: int = 0
) -> Iterator[InputSentence]:
    """The sentences of each text; a list of words is one sentence, even if it is empty.

    `first`: the number of the first text.
    """
    for index, item in enumerate(items, first):
        if not isinstance(item, str):
            yield InputSentence(index, check_words(item, index))
            continue
        try:
            found = preprocess(item)
        except InputError as error:
            raise InputError(f"Text {index}: {error}") from error
        for sentence in found.whole():
            yield InputSentence(index, sentence.words, tuple(sentence.starts))


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


def refuse_flat(given: Iterator[InputSentence]) -> Iterator[InputSentence]:
    """The same, unless every text is but one word: then the texts are the words of a sentence."""
    held: list[InputSentence] = []
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


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
