"""Corpus shards in, tensors out, each distinct word once.

    in   a `Corpus`, or sentences as lists of words
    out  `Batch`: indices of words, and for each distinct word its id and its characters

A word costs an encoder the same whether a batch holds it once or a hundred times.
"""

from polyseme.data.batch import Batch
from polyseme.data.prefetch import prefetch
from polyseme.data.special_tokens import BOS, EOS, FIRST_WORD, MASK, MAX_FILTER_WIDTH, PAD, UNK
from polyseme.data.stream import BatchConfig, SentenceStream, held_out
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig

__all__ = [
    "BOS",
    "EOS",
    "FIRST_WORD",
    "MASK",
    "MAX_FILTER_WIDTH",
    "PAD",
    "UNK",
    "Batch",
    "BatchConfig",
    "SentenceStream",
    "Vocabulary",
    "VocabularyConfig",
    "held_out",
    "prefetch",
]
