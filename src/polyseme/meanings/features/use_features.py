"""Features of uses as arrays, whoever worked them out: a model just now, or an index long ago.

`features.py` makes them and says what they mean. This file needs no torch, nor does what reads it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.meanings.concordance.uses import Uses
from polyseme.text.corpus import Corpus, beside

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Labels = npt.NDArray[np.int64]
"""The group of each use."""


def calibration_folder(corpus: Path) -> Path:
    """Where what is found out about the corpus in a folder, and of models for it, is kept."""
    return beside(corpus, "calibration")


@dataclass(frozen=True, eq=False)
class UseFeatures:
    """A row for each use."""

    context: Floats  # (N, D)
    bag: Floats  # (N, D)
    substitutes: Ids | None  # (N, K) numbers of words, the best first; None without a head
    topic: Floats | None = None  # (N, D) by words of the corpus; None outside of one
    expected: Floats | None = None  # (N, D) topics of its substitutes; None without either

    def __len__(self) -> int:
        return len(self.context)

    def _arrays(self) -> Iterator[Any]:
        return (getattr(self, each.name) for each in fields(self))

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays."""
        return sum(each.nbytes for each in self._arrays() if each is not None)

    def select(self, chosen: npt.NDArray[np.int64]) -> "UseFeatures":
        """Those of some uses."""

        def of(array: Any) -> Any:
            return None if array is None else array[chosen]

        return UseFeatures(*map(of, self._arrays()))

    def joined(self, other: "UseFeatures") -> "UseFeatures":
        """Those of these uses and then of others, of the same model and corpus."""

        def both(one: Any, two: Any) -> Any:
            return None if one is None or two is None else np.concatenate([one, two])

        names = [each.name for each in fields(self)]
        return UseFeatures(*(both(getattr(self, name), getattr(other, name)) for name in names))


@dataclass(frozen=True, eq=False)
class Syntax:
    """What the words next to a use decide of a context by themselves: mostly a part of speech."""

    directions: tuple[Floats, ...]  # (K, D) for each side of the context, of length one

    def removed(self, contexts: Floats) -> Floats:
        """(N, D) without it."""
        halves = np.split(contexts, len(self.directions), axis=1)
        found = [
            # Not as products of matrices: a row's last bits would depend on how many others it has.
            half - np.einsum("nk,kd->nd", np.einsum("nd,kd->nk", half, directions), directions)
            for half, directions in zip(halves, self.directions, strict=True)
        ]
        return np.concatenate(found, axis=1)

    @staticmethod
    def as_table(syntax: "Syntax | None") -> pa.Table:
        """To be kept in a file: a row for each direction, none where there is no syntax."""
        rows = [
            {"side": side, "direction": each.tolist()}
            for side, some in enumerate(syntax.directions if syntax else ())
            for each in some
        ]
        schema = pa.schema([("side", pa.int64()), ("direction", pa.list_(pa.float32()))])
        return pa.Table.from_pylist(rows, schema)

    @classmethod
    def of_table(cls, table: pa.Table) -> "Syntax | None":
        """What was kept."""
        sides = table["side"].to_numpy()
        if not len(sides):
            return None
        each = np.array(table["direction"].to_pylist(), np.float32)
        return cls(tuple(each[sides == side] for side in range(int(sides.max()) + 1)))


class UseEncoder(Protocol):
    """Whoever knows the features of uses: a model, or an index."""

    @property
    def words(self) -> list[str]:
        """What the numbers of substitutes stand for; empty without a head."""

    @property
    def fingerprint(self) -> str:
        """That of the model."""

    def gains(
        self, sentences: Sequence[Sequence[str]], corpus: Corpus, /
    ) -> tuple[float, float] | None:
        """How many times better than by frequency words of these sentences are predicted, and words
        of the model's own texts; None if not known."""

    @property
    def layer(self) -> int | None:
        """The layer whose vectors are the only features, if that is asked for."""

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        """The same uses, without what only tells which part of speech is expected, if it can."""

    def encode(self, uses: Uses, on_use: Callable[[int], None] = ...) -> UseFeatures:
        """Features of uses; `on_use` is called with how many are done."""
