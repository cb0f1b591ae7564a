"""Words in subword tokens, and long sentences in windows of them.

    in   sentences as lists of words
    out  `Subwords`: for each sentence its token ids, and which word each of them is a part of

Each word is tokenized by itself, so a token is never part of two words. A space goes before a word
as in running text: many tokenizers have other tokens for the beginning of a word than for its
inside. Special tokens are put around each window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from polyseme.data.batch import Integers

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, CJK punctuation, kana, Han and their
# wide forms. Other encoders were trained on such text as it is, so no space goes there.
_NO_SPACES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x312F),
    (0x31A0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)


class TokenWindow(NamedTuple):
    """Words `begin` to `end` are read at once; the vectors of `first` to `last` are taken."""

    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Subwords:
    """A sentence as an encoder reads it, special tokens apart."""

    ids: Integers  # (S,)
    counts: Integers  # (T,) tokens of each word; 0 where the tokenizer has none for it
    before: tuple[int, ...]
    after: tuple[int, ...]
    """Ids of the special tokens around it."""
    unread_characters: int
    """At the ends of words that have more tokens than are read at once."""

    @property
    def starts(self) -> Integers:
        """(T,) where each word's tokens begin."""
        starts: Integers = np.cumsum(self.counts) - self.counts
        return starts

    @property
    def num_unread(self) -> int:
        """Words without a token: nothing is known of them but that they are there."""
        return int((self.counts == 0).sum())

    def row(self, window: TokenWindow) -> list[int]:
        """The ids of a window, with its special tokens."""
        ends = np.cumsum(self.counts)
        begin = int(ends[window.begin] - self.counts[window.begin])
        inside = self.ids[begin : int(ends[window.end - 1])]
        return [*self.before, *inside.tolist(), *self.after]


class SubwordTokenizer:
    """Splits words into the subword tokens of an encoder."""

    def __init__(self, tokenizer: Any, *, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # A word with the same characters as a special token, such as [SEP], is a word.
        tokenizer.encode_special_tokens = True
        self.max_tokens = max(1, max_tokens - int(tokenizer.num_special_tokens_to_add(False)))
        """Tokens that are read at once, special tokens not counted."""

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Subwords]:
        """Each sentence in tokens."""
        spaced = [with_spaces(words) for words in sentences]
        found = self._tokenizer.encode_batch(spaced, is_pretokenized=True)
        return [self._subwords(words, each) for words, each in zip(spaced, found, strict=True)]

    def _subwords(self, words: Sequence[str], encoding: Any) -> Subwords:
        which = np.array([-1 if n is None else n for n in encoding.word_ids], np.int64)
        ids = np.array(encoding.ids, np.int64)
        inside = np.flatnonzero(which >= 0)
        first, last = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (len(ids), len(ids))
        which = which[inside]
        counts: Integers = np.bincount(which, minlength=len(words))
        unread = 0
        if counts.max(initial=0) > self.max_tokens:
            nth = np.arange(len(which)) - (np.cumsum(counts) - counts)[which]
            for word in np.flatnonzero(counts > self.max_tokens).tolist():
                at = inside[which == word][self.max_tokens - 1]
                unread += len(words[word]) - encoding.offsets[at][1]
            inside = inside[nth < self.max_tokens]
            counts = np.minimum(counts, self.max_tokens)
        around = tuple(ids[:first].tolist()), tuple(ids[last:].tolist())
        return Subwords(ids[inside], counts, *around, unread)


def with_spaces(words: Sequence[str]) -> list[str]:
    """Each word with the space before it that running text would have there."""
    spaced = list(words[:1])
    for before, word in pairwise(words):
        is_close = _is_without_spaces(before[-1]) or _is_without_spaces(word[0])
        spaced.append(word if is_close else f" {word}")
    return spaced


def _is_without_spaces(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _NO_SPACES)


def windows_of(counts: Integers, max_tokens: int) -> list[TokenWindow]:
    """A sentence whose words have so many tokens, in windows of at most `max_tokens`.

    Successive windows share up to a quarter of their tokens. Of the words that they share, the
    first half is taken from the window before and the second from the window after, so that each
    word is taken where it has more context. A word is never cut.
    """
    ends: Integers = np.concatenate([[0], np.cumsum(counts)])  # tokens before each word
    spans = [_fill(ends, 0, max_tokens)]
    while spans[-1][1] < len(counts):
        begin, end = spans[-1]
        room = min(max_tokens // 4, max_tokens - int(counts[end]))
        shared = int(np.searchsorted(ends, ends[end] - room))
        spans.append(_fill(ends, min(max(shared, begin + 1), end), max_tokens))
    middles = [
        max(begin, int(np.searchsorted(ends, (ends[begin] + ends[end]) / 2)))
        for (_, end), (begin, _) in pairwise(spans)
    ]
    edges = [0, *middles, len(counts)]
    return [TokenWindow(*span, *edges[n : n + 2]) for n, span in enumerate(spans)]


def _fill(ends: Integers, begin: int, max_tokens: int) -> tuple[int, int]:
    """As many words from `begin` on as have room in a window."""
    return begin, int(np.searchsorted(ends, ends[begin] + max_tokens, side="right")) - 1
