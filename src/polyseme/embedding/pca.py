"""Fewer dimensions by principal component analysis (PCA), fitted once per run.

    in   the vectors of a sample of the corpus, some 20,000 words from all over it
    out  `pca.safetensors`: for each layer a mean and the components, beside the vectors

Vectors that are made later, of a query say, can be projected by the same file and compared.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from polyseme.embedding.output import Vectors
from polyseme.errors import ConfigError
from polyseme.limits import LimitError, check_size
from polyseme.storage.files import scratch_for

PCA_FILE = "pca.safetensors"
_SAMPLE = 20_000
_KEY, _RATIO = "made_from", "explained_variance_ratio"
LARGEST_PCA = 1 << 30
"""Bytes of the file; 3 layers from 2,048 dimensions to 1,024 have 25 MB."""


@dataclass(frozen=True)
class Pca:
    """For each of L layers a projection from D dimensions to W."""

    mean: Vectors  # (L, D)
    components: Vectors  # (L, D, W)
    explained_variance_ratio: tuple[float, ...]
    """For each layer, the share of the sample's variance that all components together have."""

    def __call__(self, vectors: Vectors) -> Vectors:
        """(L, T, D) -> (L, T, W)"""
        projected: Vectors = np.matmul(vectors - self.mean[:, None], self.components)
        return projected

    def save(self, folder: Path, made_from: str) -> None:
        """Write the file, with a hash of what it was made from."""
        tensors = {"mean": self.mean, "components": self.components}
        tensors[_RATIO] = np.array(self.explained_variance_ratio, np.float32)
        with scratch_for(folder / PCA_FILE) as scratch:
            scratch.write_bytes(save(tensors, metadata={_KEY: made_from}))

    @classmethod
    def load(cls, folder: Path, made_from: str | None = None) -> "Pca | None":
        """The one in this folder, or None; with `made_from`, only if it was made from that."""
        try:
            check_size(PCA_FILE, (folder / PCA_FILE).stat().st_size, LARGEST_PCA)
            with safe_open(folder / PCA_FILE, "numpy") as file:
                if made_from is not None and (file.metadata() or {}).get(_KEY) != made_from:
                    return None
                mean, components, ratio = map(file.get_tensor, ("mean", "components", _RATIO))
        except (OSError, SafetensorError, LimitError):
            return None
        return cls(mean, components, tuple(ratio.tolist()))


def fit_pca(samples: Iterable[Vectors], dim: int) -> Pca:
    """From arrays (L, T, D), as many as are needed. Memory holds a D x D matrix for each layer."""
    words = 0
    total = scatter = np.zeros(1)
    for vectors in samples:
        precise = vectors.astype(np.float64)
        words += precise.shape[1]
        total = total + precise.sum(axis=1)  # (L, D)
        scatter = scatter + np.matmul(precise.transpose(0, 2, 1), precise)  # (L, D, D)
        if words >= _SAMPLE:
            break
    if not words or dim > min(words, total.shape[-1]):
        most = min(words, total.shape[-1]) if words else 0
        raise ConfigError(
            f"PCA cannot give {dim} dimensions: {most} at most (those of a vector, or the number "
            "of words at hand). Ask for a smaller --pca."
        )
    mean = total / words
    covariance = scatter / words - mean[:, :, None] * mean[:, None, :]
    values, vectors_of = np.linalg.eigh(covariance)  # ascending
    chosen = vectors_of[..., ::-1][..., :dim]
    # A component and its opposite are equally good: the largest number decides which it is.
    largest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=1, keepdims=True), axis=1)
    ratio = values[:, ::-1][:, :dim].sum(axis=1) / values.sum(axis=1)
    components = (chosen * np.sign(largest)).astype(np.float32)
    return Pca(mean.astype(np.float32), components, tuple(ratio.tolist()))
