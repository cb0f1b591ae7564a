"""Some sentences at a time: cut to what the model reads, sorted into batches, put in order again.

    in   sentences as lists of words, any number, any length
    out  `Window`: the batches, and for each row of a batch where its vectors belong

Memory is bounded by the window, however many sentences there are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from polyseme.batches.alphabet import Integers, encode_words
from polyseme.batches.batch import Batch
from polyseme.batches.marks import END, START
from polyseme.batches.table import FIRST_ROW, pad, with_marks
from polyseme.text.sentences import cut_long

SENTENCES = 1024
"""Most sentences that are sorted together."""
ROWS, WORDS = 128, 4096
"""Most rows, and most places for words, in a batch."""


@dataclass(frozen=True)
class Piece:
    """Words `begin` to `end` of a sentence of the window: what the model reads at once."""

    sentence: int
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class Part:
    """A batch, the rows of the window's words it reads, and the piece each of its rows is."""

    batch: Batch
    distinct: Tensor  # (U,) int64
    pieces: tuple[Piece, ...]


def gather(sentences: Iterable[Sequence[str]], *, most_words: int) -> Iterator[list[Sequence[str]]]:
    """Windows of sentences; one that is longer than `most_words` is a window of its own."""
    window: list[Sequence[str]] = []
    num_words = 0
    for sentence in sentences:
        if window and (len(window) == SENTENCES or num_words + len(sentence) > most_words):
            yield window
            window, num_words = [], 0
        window.append(sentence)
        num_words += len(sentence)
    if window:
        yield window


class Window:
    """Sentences that are embedded together, each distinct word once."""

    def __init__(self, sentences: Sequence[Sequence[str]], *, longest: int) -> None:
        encoded = encode_words(sentences)
        self.distinct: list[str] = encoded.dictionary.to_pylist()
        """Its words, each once; row FIRST_ROW + n stands for word n."""
        self._pieces = [
            Piece(number, *span)
            for number, sentence in enumerate(sentences)
            if len(sentence)
            for span in cut_long(0, len(sentence), longest)
        ]
        lengths = np.array([piece.end - piece.begin for piece in self._pieces], np.int64)
        codes = encoded.indices.to_numpy().astype(np.int32) + FIRST_ROW
        self._flat = with_marks(codes, lengths)
        self._lengths = lengths + 2
        self._starts: Integers = np.cumsum(self._lengths) - self._lengths

    def parts(self, rows: int | None = None) -> Iterator[Part]:
        """All pieces in batches, the longest first. With `rows`, each batch has just so many."""
        order = np.argsort(-self._lengths, kind="stable")
        begin = 0
        while begin < len(order):
            longest = int(self._lengths[order[begin]])
            number = rows or min(ROWS, max(1, WORDS // longest))
            yield self._part(order[begin : begin + number], rows)
            begin += number

    def _part(self, chosen: Integers, rows: int | None) -> Part:
        lengths = self._lengths[chosen]
        matrix = pad(self._flat, self._starts[chosen], lengths)
        pieces = tuple(self._pieces[n] for n in chosen)
        if rows is not None and rows > len(chosen):
            filling = np.zeros((rows - len(chosen), matrix.shape[1]), matrix.dtype)
            filling[:, :2] = START, END  # sentences without words
            matrix = np.concatenate([matrix, filling])
            lengths = np.concatenate([lengths, np.full(len(filling), 2, np.int64)])
        occurs = np.zeros(FIRST_ROW + len(self.distinct), np.bool_)
        occurs[matrix] = True
        occurs[0] = True
        distinct = np.flatnonzero(occurs)
        places = np.cumsum(occurs) - 1
        nothing = torch.empty(0, dtype=torch.int64)  # layer 0 is there already
        batch = Batch(
            torch.from_numpy(places[matrix]), torch.from_numpy(lengths), nothing, nothing[:, None]
        )
        return Part(batch, torch.from_numpy(distinct), pieces)
