"""Layer 0: distinct words in, a vector for each out, those met lately remembered.

    in   words            N spellings, each once
    out  vectors (N, D)

A word's bits depend on the word alone: it is always worked out among as many rows, of as many
characters as its own length asks for. So what is remembered changes speed and nothing else.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from polyseme.data.batch import FIRST_ROW, Integers, WordTable, padded_length
from polyseme.data.vocabulary import Vocabulary

_ROWS = 64  # fewer are slower for many words, more for one sentence
_WIDTHS = (16, 24)  # characters; and the most a spelling may have
_NUM_WORDS = 16_384
"""Of one generation; there are two, 25 MB with 192 dimensions. With 43,690, 1.4 instead of 2.2 of
100 running words are worked out again in three million of novels: 0.4 % less time."""

EmbedWords = Callable[[Tensor, Tensor], Tensor]


class WordEmbeddingCache:
    """Layer 0 of any words. Remembers those met lately, in two generations of bounded size."""

    def __init__(
        self, inputs: EmbedWords, vocabulary: Vocabulary, *, dim: int, device: str
    ) -> None:
        self._inputs, self._vocabulary, self._device = inputs, vocabulary, device
        self._capacity, self._dim = _NUM_WORDS, dim
        self._young, self._old = (_Generation(self._capacity, dim, device) for _ in range(2))
        self._lock = Lock()  # threads may share an embedder

    def __call__(self, words: Sequence[str]) -> Tensor:
        """(FIRST_ROW + N, D): padding, the special tokens and then these distinct words."""
        with self._lock:
            return self._look_up(words)

    def _look_up(self, words: Sequence[str]) -> Tensor:
        table = torch.empty(FIRST_ROW + len(words), self._dim, device=self._device)
        table[:FIRST_ROW] = self._special_tokens
        vectors = table[FIRST_ROW:]
        unknown = self._young.recall(words, np.arange(len(words)), vectors)
        fresh = self._old.recall(words, unknown, vectors)
        if len(fresh):
            missing = self._vocabulary.table_of(pa.array([words[n] for n in fresh], pa.string()))
            places = torch.from_numpy(fresh).to(self._device)
            vectors[places] = self._work_out(missing)[FIRST_ROW:]
        self._remember(words, unknown, vectors)
        return table

    @cached_property
    def _special_tokens(self) -> Tensor:
        return self._work_out(self._vocabulary.table_of(pa.array([], pa.string())))

    def _remember(self, words: Sequence[str], chosen: Integers, vectors: Tensor) -> None:
        chosen = chosen[: self._capacity]
        if self._young.num_words + len(chosen) > self._capacity:
            self._old, self._young = self._young, self._old
            self._young.forget()
        self._young.add(words, chosen, vectors)

    def _work_out(self, table: WordTable) -> Tensor:
        """Every row of a table (N, D), in chunks of one size, alike in width."""
        limit = table.char_ids.shape[1]
        widths = np.array([min(width, limit) for width in (*_WIDTHS, limit)])
        needed = [padded_length(int(length), limit) for length in table.char_lengths]
        classes = np.searchsorted(widths, needed)
        found = torch.empty(len(table.ids), self._dim, device=self._device)
        for number, width in enumerate(widths):
            chosen = np.flatnonzero(classes == number)
            for begin in range(0, len(chosen), _ROWS):
                rows = chosen[begin : begin + _ROWS]
                filled = np.zeros(_ROWS, np.int64)
                filled[: len(rows)] = rows
                ids = torch.from_numpy(table.ids[filled])
                char_ids = torch.from_numpy(table.char_ids[filled, :width].astype(np.int64))
                vectors = self._inputs(ids.to(self._device), char_ids.to(self._device))
                found[torch.from_numpy(rows).to(self._device)] = vectors[: len(rows)].float()
        return found


class _Generation:
    """Some words and their vectors, in memory that is taken once."""

    def __init__(self, capacity: int, dim: int, device: str) -> None:
        self._places: dict[str, int] = {}
        self._vectors = torch.empty(capacity, dim, device=device)

    @property
    def num_words(self) -> int:
        return len(self._places)

    def recall(self, words: Sequence[str], wanted: Integers, into: Tensor) -> Integers:
        """Write what is known of the wanted words; which of them are not known."""
        known = self._places
        places = np.fromiter((known.get(words[n], -1) for n in wanted), np.int64, len(wanted))
        is_known = places >= 0
        if is_known.any():
            here = torch.from_numpy(wanted[is_known]).to(into.device)
            into[here] = self._vectors[torch.from_numpy(places[is_known]).to(into.device)]
        return wanted[~is_known]

    def forget(self) -> None:
        self._places.clear()

    def add(self, words: Sequence[str], chosen: Integers, vectors: Tensor) -> None:
        begin = len(self._places)
        self._places.update((words[n], begin + k) for k, n in enumerate(chosen))
        rows = torch.from_numpy(chosen).to(vectors.device)
        self._vectors[begin : begin + len(chosen)] = vectors[rows]
