"""Features of uses as arrays, whoever worked them out: a model just now, or an index long ago.

`features.py` makes them and says what they mean. This file needs no torch, nor does what reads it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from polyseme.meanings.concordance.uses import Uses

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Labels = npt.NDArray[np.int64]
"""The group of each use."""


@dataclass(frozen=True, eq=False)
class UseFeatures:
    """A row for each use."""

    context: Floats  # (N, D)
    bag: Floats  # (N, D)
    substitutes: Ids | None  # (N, K) numbers of words, the best first; None without a head

    def __len__(self) -> int:
        return len(self.context)

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays."""
        words = 0 if self.substitutes is None else self.substitutes.nbytes
        return self.context.nbytes + self.bag.nbytes + words

    def select(self, chosen: npt.NDArray[np.int64]) -> "UseFeatures":
        """Those of some uses."""
        words = None if self.substitutes is None else self.substitutes[chosen]
        return UseFeatures(self.context[chosen], self.bag[chosen], words)


class Describer(Protocol):
    """Whoever knows the features of uses: a model, or an index."""

    @property
    def words(self) -> list[str]:
        """What the numbers of substitutes stand for; empty without a head."""

    def describe(self, uses: Uses, on_use: Callable[[int], None] = ...) -> UseFeatures:
        """Features of uses; `on_use` is called with how many are done."""
