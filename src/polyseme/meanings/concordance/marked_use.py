"""A sentence as a person gives it, one word of it meant: which words it has, and which is meant.

in   "He sat on the *bank* of the river", or the sentence and the word
out  `MarkedUse`: the words of that sentence, from and to
"""

import re
from dataclasses import dataclass

from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import InputError

_MARKED = re.compile(r"\*(\S(?:[^*]*\S)?)\*")


@dataclass(frozen=True)
class MarkedUse:
    """A sentence and the use in it: `words[begin:end]`."""

    words: tuple[str, ...]
    begin: int
    end: int

    @property
    def form(self) -> str:
        """The use as it is written."""
        return " ".join(self.words[self.begin : self.end])


def read_marked(embedder: WordEmbedder, text: str, word: str = "") -> MarkedUse:
    """The use that is meant in a text: between asterisks, or the only occurrence of `word`."""
    text, first, last = _place(text, word)
    before, marked = embedder.normalize(text[:first]), embedder.normalize(text[first:last])
    found = embedder.preprocessor(text)
    begin = found.text.find(marked, max(0, len(before) - 1))
    end = begin + len(marked)
    for sentence in found.stored():
        at = [
            number
            for number, (start, each) in enumerate(
                zip(sentence.starts, sentence.words, strict=True)
            )
            if start < end and start + len(each) > begin
        ]
        if at and begin >= 0:
            return MarkedUse(tuple(sentence.words), at[0], at[-1] + 1)
    raise InputError(f"There is no word in what is marked: {text[first:last]!r}.")


def _place(text: str, word: str) -> tuple[str, int, int]:
    """The text without marks, and where the use begins and ends in it."""
    marks = list(_MARKED.finditer(text))
    if len(marks) == 1:
        mark = marks[0]
        plain = text[: mark.start()] + mark[1] + text[mark.end() :]
        return plain, mark.start(), mark.start() + len(mark[1])
    if not word:
        found = "none is" if not marks else f"{len(marks)} are"
        raise InputError(
            f"Mark the word that is meant with asterisks: 'He sat on the *bank*'; {found} marked "
            f"in {text!r:.80}."
        )
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    # Without spaces between words, a word's neighbours are letters, too.
    places = list(pattern.finditer(text)) or list(re.finditer(re.escape(word), text))
    if len(places) != 1:
        raise InputError(
            f"{word!r} occurs {len(places)} times in {text!r:.80}. Mark the one that is meant with "
            "asterisks: 'He sat on the *bank*'."
        )
    return text, places[0].start(), places[0].end()
