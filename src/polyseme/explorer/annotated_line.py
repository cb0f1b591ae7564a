"""A use in, its line word by word out, with a word attribute for each: what is shown under it.

    in   a use by its number, and an attribute that the corpus has
    out  `AnnotatedLine`: words left of the use, the use, words right of it

Everything is text as a page may show it, and of bounded length.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from polyseme.meanings.concordance.uses import Uses
from polyseme.printable import printable

_LONGEST_VALUE = 60  # characters; FEATS of CoNLL-U can be long


class AnnotatedWord(NamedTuple):
    """A word and what is shown under it."""

    word: str
    value: str
    """Empty where there is none."""
    space: str
    """What stands between it and the next."""


class AnnotatedLine(NamedTuple):
    """A use with all of its sentence around it."""

    left: tuple[AnnotatedWord, ...]
    form: tuple[AnnotatedWord, ...]
    right: tuple[AnnotatedWord, ...]

    def cut(self, longest: int) -> "AnnotatedLine":
        """With so many characters on either side, or a word more; a mark stands for the others."""
        mark = (AnnotatedWord("…", "", ""),)
        left, right = tuple(_within(reversed(self.left), longest))[::-1], self.right
        right = tuple(_within(right, longest))
        return AnnotatedLine(
            left if len(left) == len(self.left) else mark + left,
            self.form,
            right if len(right) == len(self.right) else right + mark,
        )


def annotate(uses: Uses, number: int, attribute: str) -> AnnotatedLine:
    """The line of a use."""
    use = uses[number]
    ends = [start + len(word) for start, word in zip(use.starts, use.words, strict=True)]
    nexts = [*use.starts[1:], ends[-1]]
    words = tuple(
        AnnotatedWord(printable(word), _shortened(value or ""), printable(use.text[end:start]))
        for word, value, end, start in zip(
            use.words, uses.attribute(number, attribute), ends, nexts, strict=True
        )
    )
    return AnnotatedLine(words[: use.begin], words[use.begin : use.end], words[use.end :])


def _shortened(value: str) -> str:
    shown = printable(value)
    return shown if len(shown) <= _LONGEST_VALUE else shown[: _LONGEST_VALUE - 1] + "…"


def _within(words: Iterable[AnnotatedWord], longest: int) -> Iterator[AnnotatedWord]:
    room = longest
    for each in words:
        if room <= 0:
            return
        yield each._replace(word=each.word[:longest])
        room -= len(each.word) + len(each.space)
