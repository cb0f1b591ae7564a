"""Several sentences as one row: `<S> a </S> b </S>`, the input rewriting of GPT and BERT.

    in   rows of one or more sentences: a text, a pair, a question with a passage and an answer
    out  `Reading` in which every place counts, marks included

A task on such rows takes what the last `</S>` has gathered (GPT, which reads forward) or the `<S>`
(BERT, which sees both sides). For similarity, which has no order, it reads both orders and adds.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from polyseme.batches.alphabet import Integers
from polyseme.batches.marks import END, START
from polyseme.batches.table import Pairs, pad
from polyseme.errors import InputError
from polyseme.model import Model
from polyseme.transfer.fed import Reading
from polyseme.transfer.sentences import Sentences

Rows = Iterable[Sequence[Sequence[str]]]
Codes = npt.NDArray[np.int32]


class JoinedSource:
    """A data set whose rows are several sentences each, as one model reads them."""

    def __init__(self, model: Model, rows: Rows, *, longest: int) -> None:
        given = [list(row) for row in rows]
        for number, row in enumerate(given):
            # Marks take places too: one at the start and one behind each sentence, where a
            # sentence alone has two in all.
            if not 1 <= len(row) < longest:
                raise InputError(f"Row {number} has {len(row)} sentences; 1 or more are joined.")
        sentences = Sentences(chain.from_iterable(given))
        self._table = model.lexicon.table_of(sentences.distinct)
        self.num_cut = 0
        """Words at the ends of sentences that are not read, since their row is too long."""
        numbers = iter(range(len(sentences)))
        parts = []
        for row in given:
            own = [next(numbers) for _ in row]
            most = shorten([int(sentences.lengths[n]) for n in own], longest + 1 - len(own))
            self.num_cut += int(sentences.lengths[own].sum()) - sum(most)
            begins = sentences.starts[own]
            parts.append([sentences.rows[b : b + m] for b, m in zip(begins, most, strict=True)])
        self._flat = np.concatenate([_join(row) for row in parts])
        self._segments = np.concatenate([_segments(row) for row in parts])
        self.lengths: Integers = np.array([1 + sum(len(p) + 1 for p in row) for row in parts])
        """Places in each row, marks counted."""
        self._starts = np.cumsum(self.lengths) - self.lengths

    def gather(self, chosen: Integers) -> Reading:
        """The batch the encoder reads; every place of it is handed on."""
        starts, lengths = self._starts[chosen], self.lengths[chosen]
        matrix = pad(self._flat, starts, lengths)
        segments = pad(self._segments, starts, lengths).astype(np.int64)
        batch = self._table.batch(matrix, lengths, Pairs(segments, np.zeros(len(chosen), np.int64)))
        places = torch.arange(matrix.size).view(matrix.shape)
        return Reading(batch, places)


def shorten(lengths: Sequence[int], most: int) -> list[int]:
    """How much of each sentence is kept so that all fit: the longest gives way first (BERT)."""
    kept = list(lengths)
    while sum(kept) > most:
        longest = max(kept)
        second = max((length for length in kept if length < longest), default=0)
        among = [n for n, length in enumerate(kept) if length == longest]
        # All of the longest down to the next, or by what is too much, shared among them.
        surplus = min(sum(kept) - most, (longest - max(second, 1)) * len(among))
        for place, n in enumerate(among):
            kept[n] -= surplus // len(among) + (place < surplus % len(among))
    return kept


def _join(row: Sequence[Codes]) -> Codes:
    end = np.array([END], np.int32)
    return np.concatenate(
        [np.array([START], np.int32), *chain.from_iterable((p, end) for p in row)]
    )


def _segments(row: Sequence[Codes]) -> Codes:
    """0 in the first sentence and its marks, 1 in all others."""
    first = 2 + len(row[0])
    rest = sum(len(part) + 1 for part in row[1:])
    return np.repeat(np.array([0, 1], np.int32), [first, rest])
