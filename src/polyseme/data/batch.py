"""`Batch`, what every encoder reads: some sentences as numbers, each distinct word once.

A row is `<S> w1 ... wn </S>`, a pair of sentences `<S> a1 ... </S> b1 ... </S>`.
U below is the number of distinct words, the padding and the special tokens among them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from polyseme.data.special_tokens import MAX_FILTER_WIDTH


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
        return Batch(
            self.words.to(device),
            self.lengths.to(device),
            self.ids.to(device),
            self.char_ids.to(device),
            None if self.segments is None else self.segments.to(device),
            None if self.follows is None else self.follows.to(device),
        )


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
    is_character = (char_ids != char_ids[:, -1:]).any(dim=0)
    longest = int(is_character.nonzero().max()) + 1 if is_character.any() else 0
    return char_ids[:, : padded_length(longest, char_ids.shape[1])].contiguous()
