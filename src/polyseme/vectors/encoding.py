"""A window of sentences through the encoder: batches in, the vectors of each sentence out.

    in   sentences as lists of words
    out  for each sentence (K, T, D), the marks dropped; K as many layers as were chosen

Vectors that are not finite never leave here.
"""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from polyseme.errors import ModelError
from polyseme.model import Model
from polyseme.vectors.embedded import LayerChoice, Vectors, is_finite
from polyseme.vectors.windows import Part, Window
from polyseme.vectors.wordvectors import WordVectors

_EXACT_ROWS = 8
"""Rows of every batch in exact work: with more, one sentence alone costs more; with fewer, many."""


class Encoding:
    """An encoder on its device, in its precision."""

    def __init__(self, model: Model, *, device: str, precision: str, threads: int | None) -> None:
        self.device = device
        self._is_half, self._threads = precision == "bfloat16", threads
        self._width = model.config.encoder.output_width
        self._encoder = model.network.encoder.to(device).eval()
        self._words = WordVectors(
            self._encoder.inputs,
            model.lexicon,
            width=model.config.encoder.context.width,
            device=device,
        )

    @torch.no_grad()
    def __call__(
        self,
        sentences: Sequence[Sequence[str]],
        choice: LayerChoice,
        *,
        longest: int,
        exact: bool,
    ) -> list[Vectors]:
        """The vectors of each sentence; what has more than `longest` words is read in pieces."""
        shapes = [(choice.num_layers, len(sentence), self._width) for sentence in sentences]
        found: list[Vectors] = [np.empty(shape, np.float32) for shape in shapes]
        window = Window(sentences, longest=longest)
        with self._conditions():
            table = self._words(window.distinct)
            for part in window.parts(_EXACT_ROWS if exact else None):
                self._write(part, table, choice, found, exact=exact)
        if not all(is_finite(vectors) for vectors in found):
            raise ModelError(
                "The model gives vectors that are not finite (NaN or infinity), so its weights are "
                "damaged or too large. Take the model anew from where it came."
            )
        return found

    def _write(
        self, part: Part, table: Tensor, choice: LayerChoice, found: list[Vectors], *, exact: bool
    ) -> None:
        """Encode a batch, and put the vectors of its words where they belong."""
        distinct = table[part.distinct.to(self.device)]
        batch = part.batch.to(self.device)
        encoded = self._encoder.in_context(distinct, batch, exact=exact, marks=False)
        layers = [layer.float().cpu().numpy() for layer in choice(encoded.each)]
        for row, piece in enumerate(part.pieces):
            into = found[piece.sentence][:, piece.begin : piece.end]
            for number, layer in enumerate(layers):
                into[number] = layer[row, 1 : 1 + piece.end - piece.begin]  # place 0 is <S>

    @contextlib.contextmanager
    def _conditions(self) -> Iterator[None]:
        """The precision and the threads asked for, for as long as a window takes."""
        before = torch.get_num_threads()
        torch.set_num_threads(self._threads or before)
        kind = self.device.partition(":")[0]
        try:
            with torch.autocast(kind, torch.bfloat16, enabled=self._is_half):
                yield
        finally:
            torch.set_num_threads(before)
