"""Corpus shards in, tensors out, each distinct word once.

    in   a `Corpus`, or sentences as lists of words
    out  `Batch`: indices of words, and for each distinct word its id and its characters

A word costs an encoder the same whether a batch holds it once or a hundred times.
"""

from polyseme.batches.ahead import ahead
from polyseme.batches.batch import Batch
from polyseme.batches.lexicon import Lexicon, LexiconConfig
from polyseme.batches.marks import END, FIRST_WORD, HIDDEN, PADDING, START, UNKNOWN, WIDEST
from polyseme.batches.stream import BatchConfig, SentenceStream, held_out

__all__ = [
    "END",
    "FIRST_WORD",
    "HIDDEN",
    "PADDING",
    "START",
    "UNKNOWN",
    "WIDEST",
    "Batch",
    "BatchConfig",
    "Lexicon",
    "LexiconConfig",
    "SentenceStream",
    "ahead",
    "held_out",
]
