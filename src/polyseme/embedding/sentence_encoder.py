"""A group of sentences through the encoder: batches in, the vectors of each sentence out.

    in   sentences as lists of words
    out  for each sentence (K, T, D), special tokens dropped; K as many layers as were chosen

Vectors that are not finite never leave here.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from polyseme.data.batch import BOS, EOS, FIRST_ROW, Integers, encode_words
from polyseme.embedding.bucketing import FEW, ChunkBatch, LengthSortedBatches
from polyseme.embedding.output import LayerChoice, Vectors, is_finite
from polyseme.embedding.word_cache import WordEmbeddingCache
from polyseme.encoders.lstm import Lstm, run_to_last
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
            alone = len(group) <= FEW and self._reads_rows_alone
            for part in group.batches(batch_invariant=batch_invariant, one_by_one=alone):
                self._write(part, table, choice, found)
        _check_finite(found)
        return found

    @property
    def _reads_rows_alone(self) -> bool:
        contextualizer = self._encoder.contextualizer
        on_processor = self.device == "cpu" and not self._is_half
        return on_processor and isinstance(contextualizer, Lstm) and contextualizer.reads_rows_alone

    @torch.no_grad()
    def around(
        self, sentences: Sequence[Sequence[str]], spans: Sequence[tuple[int, int]], max_length: int
    ) -> tuple[Vectors, list[Vectors]]:
        """For one span of words in each sentence, what each direction knows next to it.

        (B, D) the top layer's forward half just before the span and its backward half just after
        it; and layer 0 of each sentence (T, D / 2). At most `max_length` words are read each way.
        """
        lstm = self._encoder.contextualizer
        assert isinstance(lstm, Lstm)
        encoded = encode_words(sentences)
        codes = encoded.indices.to_numpy().astype(np.int64) + FIRST_ROW
        ends = np.cumsum([len(sentence) for sentence in sentences])
        each = np.split(codes, ends[:-1])
        left = [
            np.concatenate([[BOS], rows[max(0, begin - max_length) : begin]])
            for rows, (begin, _) in zip(each, spans, strict=True)
        ]
        right = [
            np.concatenate([[EOS], rows[end : end + max_length][::-1]])
            for rows, (_, end) in zip(each, spans, strict=True)
        ]
        with torch.autocast("cpu", torch.bfloat16, enabled=self._is_half):
            table = self._words(encoded.dictionary.to_pylist())
            words, lengths = zip(*_padded(left, right), strict=True)
            states = run_to_last(lstm, table, words, lengths).float().numpy()
        static = table.float().numpy()
        _check_finite([states, static])
        return states, [static[rows] for rows in each]

    @torch.no_grad()
    def static(self, words: Sequence[str]) -> Vectors:
        """(N, D): layer 0 of words by themselves, once."""
        encoded = encode_words([words])
        kind = self.device.partition(":")[0]
        with torch.autocast(kind, torch.bfloat16, enabled=self._is_half):
            table = self._words(encoded.dictionary.to_pylist()).float().cpu().numpy()
        found: Vectors = table[encoded.indices.to_numpy() + FIRST_ROW]
        _check_finite([found])
        return found

    def _write(
        self, part: ChunkBatch, table: Tensor, choice: LayerChoice, found: list[Vectors]
    ) -> None:
        """Encode a batch, and put the vectors of its words where they belong."""
        distinct = table[part.distinct.to(self.device)]
        batch = part.batch.to(self.device)
        encoded = self._encoder.contextualize(distinct, batch, special_tokens=False)
        layers = [layer.float().cpu().numpy() for layer in choice(encoded.hidden_states)]
        for row, chunk in enumerate(part.chunks):
            into = found[chunk.sentence][:, chunk.begin : chunk.end]
            for number, layer in enumerate(layers):
                into[number] = layer[row, 1 : 1 + chunk.end - chunk.begin]  # position 0 is <S>


def _check_finite(found: Sequence[Vectors]) -> None:
    if not all(is_finite(vectors) for vectors in found):
        raise ModelError(
            "The model gives vectors that are not finite (NaN or infinity), so its weights are "
            "damaged or too large. Copy the model again from where it came."
        )


def _padded(*sides: Sequence[Integers]) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of each side as one matrix, all as wide as the longest of any; and their lengths."""
    width = max(len(row) for rows in sides for row in rows)
    for rows in sides:
        matrix = np.zeros((len(rows), width), np.int64)
        for into, row in zip(matrix, rows, strict=True):
            into[: len(row)] = row
        yield torch.from_numpy(matrix), torch.tensor([len(row) for row in rows])
