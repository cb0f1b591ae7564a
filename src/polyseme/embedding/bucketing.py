"""Sentences in batches of about one length: long ones in chunks, each row with its way back.

    in   sentences as lists of words, any number, any length
    out  `LengthSortedBatches`: batches, and for each row of a batch where its vectors belong

Memory is bounded by a group of sentences, however many there are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from polyseme.data.batch import FIRST_ROW, Batch, Integers, encode_words, pad, with_special_tokens
from polyseme.text.sentences import split_long

SENTENCES = 1024
"""Most sentences that are sorted together."""
ROWS, WORDS = 128, 4096
"""Most rows, and most places for words, in a batch."""
FEW = 8
"""Chunks that are read one by one where a single row has code of its own: of the published models
on one core, 2 in half the time, 4 in two thirds, 8 as fast as together."""
INVARIANT_ROWS = 8
"""Rows of every batch-invariant batch: more cost a single sentence more, fewer cost many more."""


@dataclass(frozen=True)
class Chunk:
    """Words `begin` to `end` of a sentence of the group: what the model reads at once."""

    sentence: int
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class ChunkBatch:
    """A batch, which of the group's distinct words it reads, and the chunk each of its rows is."""

    batch: Batch
    distinct: Tensor  # (U,) int64
    chunks: tuple[Chunk, ...]


def group_sentences(
    sentences: Iterable[Sequence[str]], *, max_words: int
) -> Iterator[list[Sequence[str]]]:
    """Groups of sentences; one that is longer than `max_words` is a group of its own."""
    group: list[Sequence[str]] = []
    num_words = 0
    for sentence in sentences:
        if group and (len(group) == SENTENCES or num_words + len(sentence) > max_words):
            yield group
            group, num_words = [], 0
        group.append(sentence)
        num_words += len(sentence)
    if group:
        yield group


class LengthSortedBatches:
    """Sentences that are embedded together, each distinct word once."""

    def __init__(self, sentences: Sequence[Sequence[str]], *, max_length: int) -> None:
        encoded = encode_words(sentences)
        self.distinct: list[str] = encoded.dictionary.to_pylist()
        """Its words, each once; row FIRST_ROW + n stands for word n."""
        self._chunks = [
            Chunk(number, *span)
            for number, sentence in enumerate(sentences)
            if len(sentence)
            for span in split_long(0, len(sentence), max_length)
        ]
        lengths = np.array([chunk.end - chunk.begin for chunk in self._chunks], np.int64)
        codes = encoded.indices.to_numpy().astype(np.int32) + FIRST_ROW
        self._flat = with_special_tokens(codes, lengths)
        self._lengths = lengths + 2
        self._starts: Integers = np.cumsum(self._lengths) - self._lengths

    def batches(
        self, *, batch_invariant: bool = False, one_by_one: bool = False
    ) -> Iterator[ChunkBatch]:
        """All chunks in batches, the longest first.

        `batch_invariant`: a batch has always as many rows, all of one length, so that the shape of
        every matrix product is known from a sentence's own length, and with it the order in which
        numbers are added up.
        """
        order = np.argsort(-self._lengths, kind="stable")
        begin = 0
        while begin < len(order):
            longest = int(self._lengths[order[begin]])
            if batch_invariant:
                alike = int(np.searchsorted(-self._lengths[order], -longest, side="right"))
                end = min(begin + INVARIANT_ROWS, alike)
                yield self._batch(order[begin:end], fill_to=INVARIANT_ROWS)
            else:
                end = begin + (1 if one_by_one else min(ROWS, max(1, WORDS // longest)))
                yield self._batch(order[begin:end])
            begin = end

    def __len__(self) -> int:
        return len(self._chunks)

    def _batch(self, chosen: Integers, fill_to: int = 0) -> ChunkBatch:
        chunks = tuple(self._chunks[n] for n in chosen)
        filling = np.full(max(0, fill_to - len(chosen)), chosen[0])  # its vectors are not used
        chosen = np.concatenate([chosen, filling])
        lengths = self._lengths[chosen]
        matrix = pad(self._flat, self._starts[chosen], lengths)
        occurs = np.zeros(FIRST_ROW + len(self.distinct), np.bool_)
        occurs[matrix] = True
        occurs[0] = True
        distinct = np.flatnonzero(occurs)
        places = np.cumsum(occurs) - 1
        nothing = torch.empty(0, dtype=torch.int64)  # layer 0 is there already
        batch = Batch(
            torch.from_numpy(places[matrix]), torch.from_numpy(lengths), nothing, nothing[:, None]
        )
        return ChunkBatch(batch, torch.from_numpy(distinct), chunks)
