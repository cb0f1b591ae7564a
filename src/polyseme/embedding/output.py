"""What an embedder gives: a sentence's words, each with its vectors, and which layers those are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from polyseme.display import html_table, sentence, summary
from polyseme.embedding.settings import Layers
from polyseme.errors import ConfigError, InputError

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Truncation:
    """What of a sentence the model did not see as it was given."""

    chunks: int = 1
    """Parts that were read apart, none seeing the others; 1 unless the sentence is very long."""
    characters: int = 0
    """Characters (of models that read bytes: bytes) at the ends of overlong words, not read."""
    unread_words: int = 0
    """Words that an encoder of subword tokens has no token for; their vectors are zeros."""


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedSentence:
    """One sentence, its words and their vectors. Padding and special tokens are not in it."""

    words: tuple[str, ...]
    vectors: Vectors
    """(L, T, D), layer 0 being the word without its sentence; (T, D) if one or a mix was asked."""
    index: int
    """Which of the given texts, or lists of words, it comes from; from 0."""
    starts: tuple[int, ...] | None = None
    """Where each word begins, in characters of the normalized text; None for lists of words."""
    truncation: Truncation = Truncation()

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.vectors.shape))
        return summary("EmbeddedSentence", f"vectors {shape}", sentence(self.words))

    def _repr_html_(self) -> str:
        """One word per row, with the length of its vector in each layer."""
        layers = self.vectors.reshape(-1, *self.vectors.shape[-2:])  # (L, T, D)
        lengths = np.linalg.norm(layers, axis=-1).T.tolist()  # (T, L)
        rows = [(word, *each) for word, each in zip(self.words, lengths, strict=True)]
        header = ("word", *(f"length {layer}" for layer in range(len(layers))))
        return html_table(f"vectors {self.vectors.shape}", rows, header)

    @property
    def ends(self) -> tuple[int, ...] | None:
        """Where each word ends, as `starts`."""
        if self.starts is None:
            return None
        return tuple(at + len(word) for at, word in zip(self.starts, self.words, strict=True))

    def sentence_vector(self) -> Vectors:
        """The mean over the words: (D,), or (L, D) with all layers. Zeros if there is no word."""
        mean: Vectors = self.vectors.sum(axis=-2) / np.float32(max(1, len(self.words)))
        return mean


class LayerChoice:
    """The layers asked for, made out of all an encoder gives."""

    def __init__(self, wish: Layers, num_layers: int) -> None:
        self._weights: list[float] | None = None
        self._number = 0
        self.is_one = not (isinstance(wish, str) and wish == "all")
        """Whether one vector for each word comes out."""
        if isinstance(wish, str):
            if wish not in ("all", "top", "average"):
                raise _unknown(wish, num_layers)
            self._number = num_layers - 1
            self._weights = [1 / num_layers] * num_layers if wish == "average" else None
        elif isinstance(wish, int | np.integer) and not isinstance(wish, bool):
            if not -num_layers <= wish < num_layers:
                raise _unknown(wish, num_layers)
            self._number = int(wish) % num_layers
        else:
            self._weights = _check_weights(wish, num_layers)
        self.num_layers = 1 if self.is_one else num_layers

    def __call__(self, each: Sequence[Tensor]) -> list[Tensor]:
        """L times (B, T, D) -> as many as asked for."""
        if not self.is_one:
            return list(each)
        if self._weights is None:
            return [each[self._number]]
        parts = [weight * layer for weight, layer in zip(self._weights, each, strict=True)]
        return [sum(parts[1:], parts[0])]


def _check_weights(wish: object, num_layers: int) -> list[float]:
    try:
        weights = [float(weight) for weight in wish]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise _unknown(wish, num_layers) from error
    if len(weights) != num_layers or not all(map(math.isfinite, weights)):
        raise _unknown(wish, num_layers)
    return weights


def _unknown(wish: object, num_layers: int) -> ConfigError:
    return ConfigError(
        f"layers={wish!r} cannot be given. This model has {num_layers} layers: 'all', 'top', "
        f"'average', a number from 0 to {num_layers - 1}, or {num_layers} weights."
    )


def is_finite(vectors: npt.NDArray[Any]) -> bool:
    """Whether no number is NaN or infinite. Looks at each only if their sum gives cause to."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(vectors.sum(dtype=np.float32)) or np.isfinite(vectors).all())


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
