"""How alike vectors of whole texts are."""

import numpy as np

from polyseme.embedding.output import Vectors
from polyseme.errors import InputError


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
