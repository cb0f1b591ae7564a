"""What a task learns from and is measured on: a sentence or two, and the right answer.

A text comes as words where its source has them marked, otherwise as a string to be split by the
segmenter of the model that will read it: a task's words must be made as the model's were.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

Words: TypeAlias = tuple[str, ...]
Text: TypeAlias = str | Words
"""Running text, or its words."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A sentence with a label for every word."""

    words: Words
    labels: tuple[str, ...]
    marked: int | None = None
    """Place of the predicate the labels are about, from 0; None where there is no such word."""


@dataclass(frozen=True, slots=True)
class Classified:
    """A text with one label, for the whole of it or for the marked word in it."""

    text: Text
    label: str
    marked: int | None = None
    """Place of the word the label is about, from 0; None where it is about the text."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Two texts and how they stand to each other."""

    first: Text
    second: Text
    label: str


Example: TypeAlias = Tagged | Classified | Paired


def with_words(example: Example, split: Callable[[str], Words]) -> Example:
    """The same example with its texts as words; what is words already stays as it is."""
    match example:
        case Tagged():
            return example
        case Classified():
            return replace(example, text=_words(example.text, split))
        case Paired():
            first, second = _words(example.first, split), _words(example.second, split)
            return replace(example, first=first, second=second)


def _words(text: Text, split: Callable[[str], Words]) -> Words:
    return split(text) if isinstance(text, str) else text
