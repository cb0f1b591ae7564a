"""The batches that a fine-tuned encoder reads, as it read in pretraining.

    in   a data set: sentences, or rows of one or more sentences (a text, a pair)
    out  `EncoderInput` of some of them

A sentence is `<S> words </S>`, in pieces if it is longer than any the model was trained on; vectors
are those of its words. A row is `<S> a </S> b </S>`, the input format of GPT and BERT; vectors are
those of every token, special tokens included. A task on rows takes what the last `</S>` has
gathered (GPT, which reads forward) or the `<S>` (BERT's [CLS], which sees both sides). For
similarity, which has no order, it reads both orders and adds.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from polyseme.data.char_vocabulary import Integers
from polyseme.data.special_tokens import BOS, EOS
from polyseme.data.table import Pairs, pad
from polyseme.errors import InputError, ModelError
from polyseme.model import Model
from polyseme.tasks.embeddings.features import EncoderInput, Sentences
from polyseme.text.sentences import split_long

SentenceRows = Iterable[Sequence[Sequence[str]]]
_Codes = npt.NDArray[np.int32]


class SentenceSource:
    """The words of a data set, looked up in a model's vocabulary."""

    def __init__(self, model: Model, sentences: Sentences, *, longest: int) -> None:
        if longest < 1:
            raise ModelError(
                f"This model reads {longest} words at a time, special tokens not counted."
            )
        self._sentences, self._longest = sentences, longest
        self._table = model.vocabulary.table_of(sentences.distinct)

    def gather(self, chosen: Integers) -> EncoderInput:
        """The batch the encoder reads, and where the words stand in it."""
        lengths = self._sentences.lengths[chosen]
        spans = [split_long(0, int(length), self._longest) for length in lengths]
        starts = np.array(
            [
                start + begin
                for start, pieces in zip(self._sentences.starts[chosen], spans, strict=True)
                for begin, _ in pieces
            ]
        )
        sizes = np.array([end - begin for pieces in spans for begin, end in pieces])
        matrix = np.pad(pad(self._sentences.rows, starts, sizes), ((0, 0), (1, 1)))
        matrix[:, 0] = BOS
        matrix[np.arange(len(sizes)), sizes + 1] = EOS
        places = np.zeros((len(chosen), int(lengths.max())), np.int64)
        piece = 0
        for row, pieces in enumerate(spans):
            for begin, end in pieces:
                places[row, begin:end] = piece * matrix.shape[1] + 1 + np.arange(end - begin)
                piece += 1
            places[row, lengths[row] :] = places[row, 0]  # no other sentence's word
        return EncoderInput(self._table.batch(matrix, sizes + 2), torch.from_numpy(places))


class SequenceSource:
    """A data set whose rows are several sentences each, as one model reads them."""

    def __init__(self, model: Model, rows: SentenceRows, *, longest: int) -> None:
        given = [list(row) for row in rows]
        for number, row in enumerate(given):
            # Special tokens take places too: BOS, and an EOS behind each sentence, where a
            # sentence alone has two in all.
            if not 1 <= len(row) < longest:
                raise InputError(f"Row {number} has {len(row)} sentences; 1 or more are joined.")
        sentences = Sentences(chain.from_iterable(given))
        self._table = model.vocabulary.table_of(sentences.distinct)
        self.num_truncated = 0
        """Words at the ends of sentences that are not read, since their row is too long."""
        numbers = iter(range(len(sentences)))
        parts = []
        for row in given:
            own = [next(numbers) for _ in row]
            most = truncate([int(sentences.lengths[n]) for n in own], longest + 1 - len(own))
            self.num_truncated += int(sentences.lengths[own].sum()) - sum(most)
            begins = sentences.starts[own]
            parts.append([sentences.rows[b : b + m] for b, m in zip(begins, most, strict=True)])
        self._flat = np.concatenate([_join(row) for row in parts])
        self._segments = np.concatenate([_segments(row) for row in parts])
        self.lengths: Integers = np.array([1 + sum(len(p) + 1 for p in row) for row in parts])
        """Places in each row, special tokens counted."""
        self._starts = np.cumsum(self.lengths) - self.lengths

    def gather(self, chosen: Integers) -> EncoderInput:
        """The batch the encoder reads; every place of it is handed on."""
        starts, lengths = self._starts[chosen], self.lengths[chosen]
        matrix = pad(self._flat, starts, lengths)
        segments = pad(self._segments, starts, lengths).astype(np.int64)
        batch = self._table.batch(matrix, lengths, Pairs(segments, np.zeros(len(chosen), np.int64)))
        places = torch.arange(matrix.size).view(matrix.shape)
        return EncoderInput(batch, places)


def truncate(lengths: Sequence[int], most: int) -> list[int]:
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


def _join(row: Sequence[_Codes]) -> _Codes:
    end = np.array([EOS], np.int32)
    return np.concatenate([np.array([BOS], np.int32), *chain.from_iterable((p, end) for p in row)])


def _segments(row: Sequence[_Codes]) -> _Codes:
    """0 in the first sentence and its special tokens, 1 in all others."""
    first = 2 + len(row[0])
    rest = sum(len(part) + 1 for part in row[1:])
    return np.repeat(np.array([0, 1], np.int32), [first, rest])
