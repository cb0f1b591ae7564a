"""The words of some sentences, each looked up once; batches are cut out of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from polyseme.data.batch import Batch, padded_length
from polyseme.data.char_vocabulary import CharIds, Integers
from polyseme.data.special_tokens import BOS, EOS

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
