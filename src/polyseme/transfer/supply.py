"""What a feed draws its batches from: a data set's sentences, each part looked up beforehand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from polyseme.batches.alphabet import Integers
from polyseme.errors import InputError
from polyseme.transfer.fed import Given
from polyseme.transfer.finetuned import ReadingSource
from polyseme.transfer.frozen import LayerSource
from polyseme.transfer.joined import JoinedSource
from polyseme.transfer.units import Spread, spread_batch, spread_layers, spread_reading
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
        units: WordSource | None = None,
        spread: Spread | None = None,
        num_cut: int = 0,
    ) -> None:
        """`units` and `spread`: where labels stand at characters, see `units`."""
        self.lengths = lengths
        """Words in each sentence; in rows of joined sentences, marks counted."""
        self._words, self._layers, self._reading = words, layers, reading
        self.num_cut = num_cut
        """Words that are not read, their row of joined sentences being too long."""
        self._units, self._spread = units, spread

    def __len__(self) -> int:
        return len(self.lengths)

    def gather(self, chosen: Sequence[int] | Integers) -> Given:
        """These sentences, in this order. May be called in a thread that prepares batches."""
        numbers = np.asarray(chosen, np.int64)
        if not len(numbers) or numbers.min() < 0 or numbers.max() >= len(self):
            raise InputError(
                f"Sentences {numbers[:4].tolist()} ... are not all among the {len(self)} there are."
            )
        given = Given(
            torch.from_numpy(self.lengths[numbers]),
            None if self._words is None else self._words.gather(numbers),
            None if self._layers is None else self._layers.gather(numbers),
            None if self._reading is None else self._reading.gather(numbers),
            None if self._units is None else self._units.gather(numbers),
        )
        return given if self._spread is None else _spread(given, self._spread.places(numbers))


def _spread(given: Given, places: Tensor) -> Given:
    """What stands at words, at the units that make them up."""
    spelt, layers, reading = given.spelt, given.layers, given.reading
    return replace(
        given,
        spelt=None if spelt is None else spread_batch(spelt, places, given.lengths),
        layers=None if layers is None else spread_layers(layers, places),
        reading=None if reading is None else spread_reading(reading, places),
    )
