"""Spellings as character ids: Arrow strings in, a matrix out, no loop over words.

A word is `begin c1 ... cn end padding ...`; a mark has one id of its own in the place of c1.
`bytes` numbers the bytes of UTF-8 exactly as the published ELMo models do (bilm-tf,
`UnicodeCharsVocabulary`, each number raised by one so that 0 is left for the padding word).
`unicode` numbers the characters of the corpus by falling count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.batches.marks import END, FIRST_WORD, HIDDEN, PADDING, START, UNKNOWN
from polyseme.errors import InputError

CharacterKind = Literal["none", "bytes", "unicode"]
Integers = npt.NDArray[np.int64]
Spellings = npt.NDArray[np.int32]
CODE_POINTS = 0x110000


@dataclass(frozen=True)
class Layout:
    """The ids that frame a word, and the one a mark has between them."""

    padding: int
    begin: int
    end: int
    marks: dict[int, int]
    first: int
    """Id of the first real character."""


# Words hold ids 1 to 256, so a mark written with a frame's id can be no word's spelling.
_BYTES = Layout(261, 259, 260, {START: 257, END: 258, HIDDEN: 259, UNKNOWN: 260}, 1)
_UNICODE = Layout(1, 2, 3, {START: 4, END: 5, HIDDEN: 6, UNKNOWN: 7}, 8)
_UNKNOWN_CHARACTER = 7


class Alphabet:
    """How spellings are written in numbers."""

    def __init__(self, kind: CharacterKind, max_characters: int, characters: str = "") -> None:
        self.characters = characters
        """Those with an id of their own, in the order of their ids (unicode only)."""
        self.width = 0 if kind == "none" else max_characters
        self._layout = _BYTES if kind == "bytes" else _UNICODE
        self._ids: npt.NDArray[np.int32] | None = None
        self.num_characters = {"none": 0, "bytes": 262}.get(kind, 8 + len(characters))
        if kind == "unicode":
            self._ids = np.full(CODE_POINTS, _UNKNOWN_CHARACTER, np.int32)
            points = np.frombuffer(characters.encode("utf-32-le"), "<u4")
            self._ids[points] = np.arange(len(points)) + self._layout.first

    def marks(self) -> Spellings:
        """(FIRST_WORD, width) the spelling of every mark, in the order of their ids."""
        table = np.full((FIRST_WORD, self.width), self._layout.padding, np.int32)
        for mark, inside in self._layout.marks.items():
            table[mark, :3] = (self._layout.begin, inside, self._layout.end)[: self.width]
        table[PADDING] = 0
        return table

    def spell(self, words: Any) -> Spellings:
        """(number of words, width) from an Arrow array of strings; what is too long is cut."""
        table = np.full((len(words), self.width), self._layout.padding, np.int32)
        if not self.width or not len(words):
            return table
        ids, starts = self._written(words)
        lengths = np.minimum(np.diff(starts), self.width - 2)
        rows = np.repeat(np.arange(len(words)), lengths)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        table[:, 0] = self._layout.begin
        table[rows, places + 1] = ids[starts[rows] + places]
        table[np.arange(len(words)), lengths + 1] = self._layout.end
        return table

    def _written(self, words: Any) -> tuple[npt.NDArray[np.int32], Integers]:
        """Ids of all characters of all words one after another, and where each word begins."""
        data, starts = utf8_of(words)
        if self._ids is None:
            return data.astype(np.int32) + self._layout.first, starts
        points, starts = code_points(data, starts)
        return self._ids[points], starts

    def spelling_lengths(self, spellings: Spellings) -> Integers:
        """How long each spelling is, its frame counted; 0 for the padding word."""
        is_padding = (spellings == self._layout.padding) | (spellings == 0)
        lengths: Integers = self.width - is_padding.sum(axis=1)
        return lengths


def encode_words(sentences: Iterable[Sequence[str]]) -> Any:
    """All words one after another, as an Arrow array of places in a list of the distinct ones."""
    try:
        words = list(chain.from_iterable(sentences))  # Arrow is slower with what has no length
        return pa.array(words, pa.string()).dictionary_encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The word {error.object!r} holds half a character, which no text can. Decode the text "
            "with the encoding it was written in."
        ) from error


def utf8_of(words: Any) -> tuple[npt.NDArray[np.uint8], Integers]:
    """The bytes of all words one after another, and where each begins (and the last ends)."""
    _, offsets, data = words.buffers()
    begin = words.offset
    starts = np.frombuffer(offsets, np.int32)[begin : begin + len(words) + 1].astype(np.int64)
    whole = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return whole[starts[0] : starts[-1]], starts - starts[0]


def code_points(
    data: npt.NDArray[np.uint8], starts: Integers
) -> tuple[npt.NDArray[np.uint32], Integers]:
    """UTF-8 to code points; the starts are counted anew, in characters."""
    points = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-32-le"), "<u4")
    begins = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=begins[1:])  # 10xxxxxx goes on with a character
    return points, begins[starts]


def as_strings(words: Any) -> Any:
    """One Arrow array of plain strings from whatever kind of string array there is."""
    array = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
    return array if array.type == pa.string() else array.cast(pa.string())
