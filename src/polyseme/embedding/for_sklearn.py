"""Texts to rows of numbers, as a step of a scikit-learn pipeline (extra [senses])."""

from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np

from polyseme.embedding.loading import load_embedder
from polyseme.embedding.settings import Layers, Precision
from polyseme.embedding.word_embedder import LayerChoice, Vectors, WordEmbedder
from polyseme.errors import InputError, MissingExtraError

try:
    from sklearn.base import (
        BaseEstimator,
        TransformerMixin,
    )
except ImportError as error:
    raise MissingExtraError.of(
        "scikit-learn", extra="senses", purpose="A scikit-learn transformer"
    ) from error


class TextVectors(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One row for each text, or list of words: the mean over all its words.

    Nothing is learnt from the texts. The model is loaded when it is first needed, in every process
    by itself, and does not travel with a copied or stored pipeline: only its folder's name does.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        layers: Layers = "average",
        device: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.layers = layers
        self.device = device
        self.precision = precision
        self.threads = threads

    def fit(self, texts: Iterable[Any], labels: Any = None) -> "TextVectors":  # noqa: ARG002
        """Load the model; there is nothing to learn."""
        self._load()
        return self

    def transform(self, texts: Iterable[Any]) -> Vectors:
        """(number of texts, D); with all layers, they stand one after the other. No word: zeros."""
        if isinstance(texts, str):
            raise InputError("One row is made for each text: give a list of texts, not a text.")
        return self._load().encode(list(texts), layers=self.layers)

    def get_feature_names_out(self, names: Any = None) -> Any:  # noqa: ARG002
        """Names for the columns, for tools that want some."""
        embedder = self._load()
        dim = embedder.dim * LayerChoice(self.layers, embedder.num_layers).num_layers
        return np.array([f"polyseme{number}" for number in range(dim)], dtype=object)

    def _load(self) -> WordEmbedder:
        asked = (str(self.model), self.device, self.precision, self.threads)
        if getattr(self, "_loaded", (None, None))[0] != asked:
            embedder = load_embedder(
                self.model, device=self.device, precision=self.precision, threads=self.threads
            )
            self._loaded = asked, embedder
        return self._loaded[1]

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_loaded", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return True
