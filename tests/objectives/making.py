"""What the tests of this room build by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch

from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig

WORDS = [f"w{number}" for number in range(30)]
VOCABULARY = Vocabulary(VocabularyConfig(), pa.array(WORDS), np.ones(30, np.int64), "w0123456789x")


def random_sentences(number: int, seed: int = 0, longest: int = 12) -> list[list[str]]:
    """Sentences of known words, and of some that have no id."""
    random = np.random.default_rng(seed)
    all_words = [*WORDS, "x1", "x2"]
    lengths = random.integers(1, longest + 1, number)
    return [[all_words[n] for n in random.integers(0, len(all_words), k)] for k in lengths]


def paired(sentences: Sequence[Sequence[str]]) -> Batch:
    """Each sentence as a pair, the second from its middle on; it follows in every other."""
    batch = VOCABULARY.batch(sentences)
    place = torch.arange(batch.words.shape[1])
    is_second = batch.mask & (place >= batch.lengths[:, None] // 2)
    follows = torch.arange(len(sentences)) % 2
    return replace(batch, segments=is_second.long(), follows=follows)
