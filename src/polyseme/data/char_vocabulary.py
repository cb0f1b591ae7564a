"""Words as character ids: Arrow strings in, a matrix out, no loop over words.

A word is `begin c1 ... cn end padding ...`; a special token has an id of its own in place of c1.
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

from polyseme.data.special_tokens import BOS, EOS, FIRST_WORD, MASK, PAD, UNK
from polyseme.errors import InputError

CharacterKind = Literal["none", "bytes", "unicode"]
Integers = npt.NDArray[np.int64]
CharIds = npt.NDArray[np.int32]
CODE_POINTS = 0x110000


@dataclass(frozen=True)
class CharLayout:
    """The ids that frame a word, and the one a special token has between them."""

    padding: int
    begin: int
    end: int
    special_tokens: dict[int, int]
    first: int
    """Id of the first real character."""


# Words hold ids 1 to 256, so a special token with a frame's id between them is like no word.
_BYTES = CharLayout(261, 259, 260, {BOS: 257, EOS: 258, MASK: 259, UNK: 260}, 1)
_UNICODE = CharLayout(1, 2, 3, {BOS: 4, EOS: 5, MASK: 6, UNK: 7}, 8)
_UNKNOWN_CHARACTER = 7


class CharVocabulary:
    """Which id each character has, and how words are written with them."""

    def __init__(self, kind: CharacterKind, max_characters: int, characters: str = "") -> None:
        self.characters = characters
        """Those with an id of their own, in the order of their ids (unicode only)."""
        self.max_characters = 0 if kind == "none" else max_characters
        self._layout = _BYTES if kind == "bytes" else _UNICODE
        self._ids: npt.NDArray[np.int32] | None = None
        self.num_characters = {"none": 0, "bytes": 262}.get(kind, 8 + len(characters))
        if kind == "unicode":
            self._ids = np.full(CODE_POINTS, _UNKNOWN_CHARACTER, np.int32)
            points = np.frombuffer(characters.encode("utf-32-le"), "<u4")
            self._ids[points] = np.arange(len(points)) + self._layout.first

    def common_ids(self, other: "CharVocabulary") -> list[tuple[int, int]]:
        """The ids, here and there, of what both have: special ones first, then characters."""
        first = self._layout.first
        if not self.characters:  # the same bytes in both, or none at all
            return [(id_, id_) for id_ in range(1, self.num_characters)]
        there = {each: id_ for id_, each in enumerate(other.characters, first)}
        own = enumerate(self.characters, first)
        characters = [(id_, there[each]) for id_, each in own if each in there]
        return [*((id_, id_) for id_ in range(1, first)), *characters]

    def special_tokens(self) -> CharIds:
        """(FIRST_WORD, max_characters) of every special token, in the order of their ids."""
        table = np.full((FIRST_WORD, self.max_characters), self._layout.padding, np.int32)
        for token, inside in self._layout.special_tokens.items():
            table[token, :3] = (self._layout.begin, inside, self._layout.end)[: self.max_characters]
        table[PAD] = 0
        return table

    def char_ids(self, words: Any) -> CharIds:
        """(len(words), max_characters) from an Arrow array of strings; long ones are truncated."""
        table = np.full((len(words), self.max_characters), self._layout.padding, np.int32)
        if not self.max_characters or not len(words):
            return table
        ids, starts = self._written(words)
        lengths = np.minimum(np.diff(starts), self.max_characters - 2)
        rows = np.repeat(np.arange(len(words)), lengths)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        table[:, 0] = self._layout.begin
        table[rows, columns + 1] = ids[starts[rows] + columns]
        table[np.arange(len(words)), lengths + 1] = self._layout.end
        return table

    def _written(self, words: Any) -> tuple[npt.NDArray[np.int32], Integers]:
        """Ids of all characters of all words one after another, and where each word begins."""
        data, starts = utf8_of(words)
        if self._ids is None:
            return data.astype(np.int32) + self._layout.first, starts
        points, starts = code_points(data, starts)
        return self._ids[points], starts

    def char_lengths(self, char_ids: CharIds) -> Integers:
        """How many ids each word has, begin and end counted; 0 for the padding word."""
        is_padding = (char_ids == self._layout.padding) | (char_ids == 0)
        lengths: Integers = self.max_characters - is_padding.sum(axis=1)
        return lengths


def encode_words(sentences: Iterable[Sequence[str]]) -> Any:
    """All words one after another, as an Arrow array of indices into the distinct ones."""
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
    """UTF-8 to code points; the starts are counted again, in characters."""
    points = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-32-le"), "<u4")
    begins = np.zeros(len(data) + 1, np.int64)
    np.cumsum((data & 0xC0) != 0x80, out=begins[1:])  # 10xxxxxx goes on with a character
    return points, begins[starts]


def as_strings(words: Any) -> Any:
    """One Arrow array of plain strings from whatever kind of string array there is."""
    array = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
    return array if array.type == pa.string() else array.cast(pa.string())
