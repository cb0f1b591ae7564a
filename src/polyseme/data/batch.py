"""Words as numbers: special tokens, character ids, and `Batch`, what every encoder reads.

A batch holds each distinct word once. A row is `<S> w1 ... wn </S>`, a pair of sentences
`<S> a1 ... </S> b1 ... </S>`. U below is the number of distinct words, the padding and the special
tokens among them.

A word's character ids are `begin c1 ... cn end padding ...`; a special token has an id of its own
in place of c1. `bytes` numbers the bytes of UTF-8 exactly as the published ELMo models do (bilm-tf,
`UnicodeCharsVocabulary`, each number raised by one so that 0 is left for the padding word).
`unicode` numbers the characters of the corpus by falling count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor

from polyseme.devices import moved
from polyseme.errors import InputError

PAD = 0
"""Fills up short sentences; no word at all."""
BOS = 1
"""<S>, before the first word of every row."""
EOS = 2
"""</S>, after each sentence."""
UNK = 3
"""Every word without an id of its own. Its characters are kept."""
MASK = 4
"""Stands where a word is hidden and to be predicted."""
FIRST_WORD = 5
"""The most frequent word of the corpus."""

MAX_FILTER_WIDTH = 7
"""The widest filter that may run over a word's characters, in characters."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some sentences as numbers, each distinct word once."""

    words: Tensor  # (B, T) int64
    """Index of each word among the distinct words; padding points at distinct word 0."""
    lengths: Tensor  # (B,) int64
    """Words in each row, special tokens counted."""
    ids: Tensor  # (U,) int64
    """Vocabulary id of each distinct word; row 0 is padding."""
    char_ids: Tensor  # (U, C) int64
    """Character ids of each distinct word, row 0 all 0. C = 0 when no characters are read."""
    segments: Tensor | None = None  # (B, T) int64
    """For pairs: 0 in the first sentence, 1 in the second; padding is 0."""
    follows: Tensor | None = None  # (B,) int64
    """For pairs: 1 where the second sentence follows the first in its document, else 0."""

    @property
    def mask(self) -> Tensor:
        """(B, T) True at real words, special tokens included."""
        position = torch.arange(self.words.shape[1], device=self.words.device)
        return position < self.lengths.unsqueeze(1)

    @property
    def num_words(self) -> int:
        """Real words, special tokens counted."""
        return int(self.lengths.sum())

    def select(self, rows: Tensor) -> "Batch":
        """These rows only, as if the batch had been built from them."""
        lengths = self.lengths[rows]
        longest = int(lengths.max()) if len(lengths) else 0
        words = self.words[rows, :longest]
        # Padding leads, so that it is distinct word 0 also where no row is padded.
        with_padding = torch.cat([words.new_zeros(1), words.flatten()])
        distinct, indices = torch.unique(with_padding, return_inverse=True)
        return Batch(
            indices[1:].view(words.shape),
            lengths,
            self.ids[distinct],
            _crop(self.char_ids[distinct]),
            None if self.segments is None else self.segments[rows, :longest],
            None if self.follows is None else self.follows[rows],
        )

    def to(self, device: str | torch.device) -> "Batch":
        """The same on another device."""
        parts: Iterable[Any] = (getattr(self, each.name) for each in fields(self))
        there: list[Any] = [None if part is None else moved(part, device) for part in parts]
        return Batch(*there)


def padded_length(longest: int, limit: int) -> int:
    """C of a batch whose longest word has so many character ids, begin and end of word counted.

    MAX_FILTER_WIDTH columns of padding follow the longest word. A filter up to that width then sees
    a window of padding alone exactly where it would with all `limit` columns, so the maximum over
    all windows, and with it a word's vector, does not depend on the other words of the batch.
    """
    return min(limit, longest + MAX_FILTER_WIDTH)


def _crop(char_ids: Tensor) -> Tensor:
    """(U, C) cut to as many columns as its own longest word needs."""
    if not char_ids.numel():
        return char_ids
    # What fills a row up to its end is padding. A word that fills its row to the last column comes
    # out one too short here, but with MAX_FILTER_WIDTH added it keeps all columns all the same.
    longest = padding_start(char_ids)
    return char_ids[:, : padded_length(longest, char_ids.shape[1])].contiguous()


def padding_start(char_ids: Tensor) -> int:
    """The position from which on each of these words (U, C) has nothing but its last character."""
    is_other = (char_ids != char_ids[:, -1:]).any(dim=0)
    return int(is_other.nonzero().max()) + 1 if is_other.any() else 0


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
        self.layout = _BYTES if kind == "bytes" else _UNICODE
        """The ids that are no character of a word."""
        self._ids: npt.NDArray[np.int32] | None = None
        self.num_characters = {"none": 0, "bytes": 262}.get(kind, 8 + len(characters))
        if kind == "unicode":
            self._ids = np.full(CODE_POINTS, _UNKNOWN_CHARACTER, np.int32)
            points = np.frombuffer(characters.encode("utf-32-le"), "<u4")
            self._ids[points] = np.arange(len(points)) + self.layout.first

    def common_ids(self, other: "CharVocabulary") -> list[tuple[int, int]]:
        """The ids, here and there, of what both have: special ones first, then characters."""
        first = self.layout.first
        if not self.characters:  # the same bytes in both, or none at all
            return [(id_, id_) for id_ in range(1, self.num_characters)]
        there = {each: id_ for id_, each in enumerate(other.characters, first)}
        own = enumerate(self.characters, first)
        characters = [(id_, there[each]) for id_, each in own if each in there]
        return [*((id_, id_) for id_ in range(1, first)), *characters]

    def special_tokens(self) -> CharIds:
        """(FIRST_WORD, max_characters) of every special token, in the order of their ids."""
        table = np.full((FIRST_WORD, self.max_characters), self.layout.padding, np.int32)
        for token, inside in self.layout.special_tokens.items():
            table[token, :3] = (self.layout.begin, inside, self.layout.end)[: self.max_characters]
        table[PAD] = 0
        return table

    def char_ids(self, words: Any) -> CharIds:
        """(len(words), max_characters) from an Arrow array of strings; long ones are truncated."""
        table = np.full((len(words), self.max_characters), self.layout.padding, np.int32)
        if not self.max_characters or not len(words):
            return table
        ids, starts = self._written(words)
        lengths = np.minimum(np.diff(starts), self.max_characters - 2)
        rows = np.repeat(np.arange(len(words)), lengths)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        table[:, 0] = self.layout.begin
        table[rows, columns + 1] = ids[starts[rows] + columns]
        table[np.arange(len(words)), lengths + 1] = self.layout.end
        return table

    def _written(self, words: Any) -> tuple[npt.NDArray[np.int32], Integers]:
        """Ids of all characters of all words one after another, and where each word begins."""
        data, starts = utf8_of(words)
        if self._ids is None:
            return data.astype(np.int32) + self.layout.first, starts
        points, starts = code_points(data, starts)
        return self._ids[points], starts

    def char_lengths(self, char_ids: CharIds) -> Integers:
        """How many ids each word has, begin and end counted; 0 for the padding word."""
        is_padding = (char_ids == self.layout.padding) | (char_ids == 0)
        lengths: Integers = self.max_characters - is_padding.sum(axis=1)
        return lengths


def encode_words(sentences: Iterable[Sequence[str]]) -> Any:
    """All words one after another, as an Arrow array of indices into the distinct ones."""
    try:
        words = list(chain.from_iterable(sentences))  # Arrow is slower with what has no length
        return pa.array(words, pa.string()).dictionary_encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The word {error.object!r} holds half a character (a lone surrogate). Decode "
            "the text with the encoding it was written in."
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


FIRST_ROW = 3
"""Rows 0 to 2 of a table are PAD, BOS and EOS. Then come words."""


@dataclass(frozen=True)
class Pairs:
    """What a batch of pairs says beside the words."""

    segments: Integers
    follows: Integers


@dataclass(frozen=True)
class WordTable:
    """Id and character ids of every distinct word of some sentences."""

    ids: Integers  # (N,)
    char_ids: CharIds  # (N, max_characters)
    char_lengths: Integers  # (N,)

    def batch(
        self, rows: npt.NDArray[np.integer], lengths: Integers, pairs: Pairs | None = None
    ) -> Batch:
        """A batch from a padded (B, T) matrix of rows of this table."""
        # Not np.unique: to mark what occurs takes no sorting.
        occurs = np.zeros(len(self.ids), np.bool_)
        occurs[rows] = True
        occurs[0] = True
        distinct = np.flatnonzero(occurs)
        indices = np.empty(len(self.ids), np.int64)
        indices[distinct] = np.arange(len(distinct))
        longest = int(self.char_lengths[distinct].max())
        columns = padded_length(longest, self.char_ids.shape[1])
        return Batch(
            torch.from_numpy(indices[rows]),
            torch.from_numpy(lengths),
            torch.from_numpy(self.ids[distinct]),
            torch.from_numpy(self.char_ids[distinct, :columns].astype(np.int64)),
            None if pairs is None else torch.from_numpy(pairs.segments),
            None if pairs is None else torch.from_numpy(pairs.follows),
        )


def with_special_tokens(rows: npt.NDArray[np.int32], lengths: Integers) -> npt.NDArray[np.int32]:
    """Sentences one after another, each between BOS and EOS: length n becomes n + 2."""
    flat = np.empty(len(rows) + 2 * len(lengths), np.int32)
    ends = np.cumsum(lengths + 2)
    is_word = np.ones(len(flat), np.bool_)
    is_word[ends - 1] = False
    is_word[ends - lengths - 2] = False
    flat[is_word] = rows
    flat[ends - lengths - 2] = BOS
    flat[ends - 1] = EOS
    return flat


def pad(flat: npt.NDArray[np.int32], starts: Integers, lengths: Integers) -> npt.NDArray[np.int32]:
    """(B, T) the stretches of `flat` that begin at `starts`, zeros after their ends."""
    columns = np.arange(lengths.max(initial=0))
    # Beyond the end of a sentence lies the next one, beyond the last nothing: read its last word.
    sources = np.minimum(starts[:, None] + columns, len(flat) - 1)
    padded: npt.NDArray[np.int32] = np.where(columns < lengths[:, None], flat[sources], 0)
    return padded
