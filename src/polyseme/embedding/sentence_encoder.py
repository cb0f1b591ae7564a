"""A group of sentences through the encoder: batches in, the vectors of each sentence out.

    in   sentences as lists of words
    out  for each sentence (K, T, D), special tokens dropped; K as many layers as were chosen

Vectors that are not finite never leave here.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from polyseme.embedding.bucketing import ChunkBatch, LengthSortedBatches
from polyseme.embedding.output import LayerChoice, Vectors, is_finite
from polyseme.embedding.word_cache import WordEmbeddingCache
from polyseme.errors import ModelError
from polyseme.model import Model


class SentenceEncoder:
    """An encoder on its device, in its precision."""

    def __init__(self, model: Model, *, device: str, precision: str) -> None:
        self.device = device
        self._is_half = precision == "bfloat16"
        self._dim = model.config.encoder.output_dim
        self._encoder = model.network.encoder.to(device).eval()
        self._words = WordEmbeddingCache(
            self._encoder.inputs,
            model.vocabulary,
            dim=model.config.encoder.contextualizer.dim,
            device=device,
        )

    @torch.no_grad()
    def __call__(
        self,
        sentences: Sequence[Sequence[str]],
        choice: LayerChoice,
        *,
        max_length: int,
        batch_invariant: bool,
    ) -> list[Vectors]:
        """The vectors of each sentence; what has more than `max_length` words is read in chunks."""
        shapes = [(choice.num_layers, len(sentence), self._dim) for sentence in sentences]
        found: list[Vectors] = [np.empty(shape, np.float32) for shape in shapes]
        group = LengthSortedBatches(sentences, max_length=max_length)
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, torch.bfloat16, enabled=self._is_half):
            table = self._words(group.distinct)
            for part in group.batches(batch_invariant=batch_invariant):
                self._write(part, table, choice, found)
        if not all(is_finite(vectors) for vectors in found):
            raise ModelError(
                "The model gives vectors that are not finite (NaN or infinity), so its weights are "
                "damaged or too large. Copy the model again from where it came."
            )
        return found

    def _write(
        self, part: ChunkBatch, table: Tensor, choice: LayerChoice, found: list[Vectors]
    ) -> None:
        """Encode a batch, and put the vectors of its words where they belong."""
        distinct = table[part.distinct.to(self.device)]
        batch = part.batch.to(self.device)
        encoded = self._encoder.contextualize(distinct, batch, special_tokens=False)
        layers = [layer.float().cpu().numpy() for layer in choice(encoded.each)]
        for row, chunk in enumerate(part.chunks):
            into = found[chunk.sentence][:, chunk.begin : chunk.end]
            for number, layer in enumerate(layers):
                into[number] = layer[row, 1 : 1 + chunk.end - chunk.begin]  # position 0 is <S>
