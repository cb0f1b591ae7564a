"""A data set's sentences, known in advance: every word as a number, each distinct spelling once."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from polyseme.batches.alphabet import Integers, encode_words
from polyseme.batches.table import FIRST_ROW
from polyseme.errors import InputError
from polyseme.vectors.reading import check_words


class Sentences:
    """Sentences as lists of words; in memory, as the labels beside them are."""

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self.words = [check_words(words, index) for index, words in enumerate(sentences)]
        if not self.words:
            raise InputError("There are no sentences in the data.")
        for index, words in enumerate(self.words):
            if not words:
                raise InputError(f"Sentence {index} has no words. Leave it out of the data.")
        self.lengths: Integers = np.array([len(words) for words in self.words], np.int64)
        self.starts: Integers = np.cumsum(self.lengths) - self.lengths
        encoded = encode_words(self.words)
        self.distinct: pa.StringArray = encoded.dictionary
        """Every spelling once, in the order of appearance."""
        self.rows = encoded.indices.to_numpy().astype(np.int32) + FIRST_ROW
        """All sentences one after another; row FIRST_ROW + n stands for spelling n."""

    def __len__(self) -> int:
        return len(self.words)
