"""What a feed draws its batches from: a data set's sentences, each part looked up beforehand."""

from collections.abc import Sequence

import numpy as np
import torch

from polyseme.batches.alphabet import Integers
from polyseme.errors import InputError
from polyseme.transfer.fed import Given
from polyseme.transfer.finetuned import ReadingSource
from polyseme.transfer.frozen import LayerSource
from polyseme.transfer.joined import JoinedSource
from polyseme.transfer.words import WordSource


class Supply:
    """A data set's sentences, ready to be gathered by number."""

    def __init__(
        self,
        lengths: Integers,
        *,
        words: WordSource | None = None,
        layers: LayerSource | None = None,
        reading: ReadingSource | JoinedSource | None = None,
    ) -> None:
        self.lengths = lengths
        """Words in each sentence; in rows of joined sentences, marks counted."""
        self._words, self._layers, self._reading = words, layers, reading

    def __len__(self) -> int:
        return len(self.lengths)

    def gather(self, chosen: Sequence[int] | Integers) -> Given:
        """These sentences, in this order. May be called in a thread that prepares batches."""
        numbers = np.asarray(chosen, np.int64)
        if not len(numbers) or numbers.min() < 0 or numbers.max() >= len(self):
            raise InputError(
                f"Sentences {numbers[:4].tolist()} ... are not all among the {len(self)} there are."
            )
        return Given(
            torch.from_numpy(self.lengths[numbers]),
            None if self._words is None else self._words.gather(numbers),
            None if self._layers is None else self._layers.gather(numbers),
            None if self._reading is None else self._reading.gather(numbers),
        )
