"""`Batch`, what every encoder reads: some sentences as numbers, each distinct word once.

A row is `<S> w1 ... wn </S>`, a pair of sentences `<S> a1 ... </S> b1 ... </S>`.
U below is the number of distinct words, the padding and the marks among them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from polyseme.batches.marks import WIDEST


@dataclass(frozen=True, eq=False)
class Batch:
    """Some sentences as numbers, each distinct word once."""

    words: Tensor  # (B, T) int64
    """Index of each word among the distinct words; padding points at distinct word 0."""
    lengths: Tensor  # (B,) int64
    """Words in each row, marks counted."""
    ids: Tensor  # (U,) int64
    """Vocabulary id of each distinct word; row 0 is padding."""
    characters: Tensor  # (U, C) int64
    """Character ids of each distinct word, row 0 all 0. C = 0 when no characters are read."""
    segments: Tensor | None = None  # (B, T) int64
    """For pairs: 0 in the first sentence, 1 in the second; padding is 0."""
    follows: Tensor | None = None  # (B,) int64
    """For pairs: 1 where the second sentence follows the first in its document, else 0."""

    @property
    def mask(self) -> Tensor:
        """(B, T) True at real words, marks included."""
        place = torch.arange(self.words.shape[1], device=self.words.device)
        return place < self.lengths.unsqueeze(1)

    @property
    def num_words(self) -> int:
        """Real words, marks counted."""
        return int(self.lengths.sum())

    def select(self, rows: Tensor) -> "Batch":
        """These rows only, as if the batch had been built from them."""
        lengths = self.lengths[rows]
        longest = int(lengths.max()) if len(lengths) else 0
        words = self.words[rows, :longest]
        # Padding leads, so that it is distinct word 0 also where no row is padded.
        with_padding = torch.cat([words.new_zeros(1), words.flatten()])
        distinct, places = torch.unique(with_padding, return_inverse=True)
        return Batch(
            places[1:].view(words.shape),
            lengths,
            self.ids[distinct],
            _crop(self.characters[distinct]),
            None if self.segments is None else self.segments[rows, :longest],
            None if self.follows is None else self.follows[rows],
        )

    def to(self, device: str | torch.device) -> "Batch":
        """The same on another device."""
        return Batch(
            self.words.to(device),
            self.lengths.to(device),
            self.ids.to(device),
            self.characters.to(device),
            None if self.segments is None else self.segments.to(device),
            None if self.follows is None else self.follows.to(device),
        )


def width_for(longest: int, limit: int) -> int:
    """How many characters wide a batch is whose longest spelling, marks counted, is this.

    WIDEST columns of padding follow the longest spelling. A filter up to WIDEST wide then sees a
    window of padding alone exactly where it would at full width, so the maximum over all
    windows, and with it a word's vector, does not depend on the other words of the batch.
    """
    return min(limit, longest + WIDEST)


def _crop(characters: Tensor) -> Tensor:
    """(U, C) narrowed to the width its own longest spelling asks for."""
    if not characters.numel():
        return characters
    # What fills a row up to its end is padding. A spelling that fills its row to the last column
    # comes out one too short here, but with WIDEST added it keeps the full width all the same.
    is_spelling = (characters != characters[:, -1:]).any(dim=0)
    longest = int(is_spelling.nonzero().max()) + 1 if is_spelling.any() else 0
    return characters[:, : width_for(longest, characters.shape[1])].contiguous()
