"""Fewer dimensions: the directions in which vectors differ most (PCA), found once per run.

    in   the vectors of a sample of the corpus, some 20,000 words from all over it
    out  `narrowing.safetensors`: for each layer a mean and the directions, kept with the vectors

Vectors that are made later, of a query say, can be narrowed by the same file and compared.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from polyseme.errors import ConfigError
from polyseme.files import scratch_for
from polyseme.limits import LimitError, check_size

NAME = "narrowing.safetensors"
_SAMPLE = 20_000
_KEY = "made_from"
LARGEST_NARROWING = 1 << 30
"""Bytes of the file; 3 layers of 2,048 numbers narrowed to 1,024 have 25 MB."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Narrowing:
    """For each of L layers a projection from D numbers to W."""

    mean: Floats  # (L, D)
    directions: Floats  # (L, D, W)
    kept: tuple[float, ...]
    """For each layer, the share of the sample's variance that is left."""

    def __call__(self, vectors: Floats) -> Floats:
        """(L, T, D) -> (L, T, W)"""
        narrowed: Floats = np.matmul(vectors - self.mean[:, None], self.directions)
        return narrowed

    def save(self, folder: Path, made_from: str) -> None:
        """Write the file, with a hash of what it was made from."""
        tensors = {"mean": self.mean, "directions": self.directions}
        tensors["kept"] = np.array(self.kept, np.float32)
        with scratch_for(folder / NAME) as scratch:
            scratch.write_bytes(save(tensors, metadata={_KEY: made_from}))

    @classmethod
    def load(cls, folder: Path, made_from: str | None = None) -> "Narrowing | None":
        """The one in this folder, or None; with `made_from`, only if it was made from that."""
        try:
            check_size(NAME, (folder / NAME).stat().st_size, LARGEST_NARROWING)
            with safe_open(folder / NAME, "numpy") as file:
                if made_from is not None and (file.metadata() or {}).get(_KEY) != made_from:
                    return None
                mean, directions, kept = map(file.get_tensor, ("mean", "directions", "kept"))
        except (OSError, SafetensorError, LimitError):
            return None
        return cls(mean, directions, tuple(kept.tolist()))


def fit(samples: Iterable[Floats], width: int) -> Narrowing:
    """From arrays (L, T, D), as many as are needed. Memory holds a D x D matrix for each layer."""
    words = 0
    total = spread = np.zeros(1)
    for vectors in samples:
        exact = vectors.astype(np.float64)
        words += exact.shape[1]
        total = total + exact.sum(axis=1)  # (L, D)
        spread = spread + np.matmul(exact.transpose(0, 2, 1), exact)  # (L, D, D)
        if words >= _SAMPLE:
            break
    if not words or width > min(words, total.shape[-1]):
        most = min(words, total.shape[-1]) if words else 0
        raise ConfigError(
            f"Vectors cannot be narrowed to {width} numbers: there are {most} at most (a vector's "
            "own width, or the number of words at hand). Ask for a smaller --width."
        )
    mean = total / words
    spread = spread / words - mean[:, :, None] * mean[:, None, :]
    values, vectors_of = np.linalg.eigh(spread)  # ascending
    chosen = vectors_of[..., ::-1][..., :width]
    # A direction and its opposite are equally good: the largest number decides which it is.
    largest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=1, keepdims=True), axis=1)
    kept = values[:, ::-1][:, :width].sum(axis=1) / values.sum(axis=1)
    directions = (chosen * np.sign(largest)).astype(np.float32)
    return Narrowing(mean.astype(np.float32), directions, tuple(kept.tolist()))
