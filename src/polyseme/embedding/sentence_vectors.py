"""One vector for a whole text: the mean over all its words. And how alike two texts are by it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.embedding.output import LayerChoice, Vectors
from polyseme.embedding.settings import Layers
from polyseme.errors import InputError

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder


def mean_vectors(embedder: "WordEmbedder", texts: Sequence[Any], layers: Layers) -> Vectors:
    """(number of texts, D), also of lists of words; all layers stand one after the other.

    A text without a word is a row of zeros.
    """
    dim = embedder.dim * LayerChoice(layers, embedder.num_layers).num_layers
    rows = np.zeros((len(texts), dim))
    counts = np.zeros((len(texts), 1))
    for sentence in embedder.embed(iter(texts), layers=layers):
        rows[sentence.index] += sentence.vectors.sum(axis=-2, dtype=np.float64).ravel()
        counts[sentence.index] += len(sentence.words)
    means: Vectors = (rows / np.maximum(counts, 1)).astype(np.float32)
    return means


def cosines(one: Vectors, other: Vectors) -> Vectors:
    """(N, M): the cosine of each row of one with each of the other; 0 for a row of zeros."""
    if one.shape[1] != other.shape[1]:
        raise InputError(
            f"Vectors of {one.shape[1]} and {other.shape[1]} dimensions cannot be compared. Encode "
            "both with the same model and layers."
        )
    found: Vectors = normalized(one) @ normalized(other).T
    return found


def normalized(vectors: Vectors) -> Vectors:
    """(N, D): each row of length 1; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return found
