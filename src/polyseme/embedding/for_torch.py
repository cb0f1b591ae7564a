"""Sentences and their labels as a dataset for torch's `DataLoader`: vectors are made as needed.

dataset = EmbeddedDataset(embedder, sentences, labels)
for vectors, mask, labels in DataLoader(dataset, batch_size=32, collate_fn=pad): ...
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from polyseme.embedding.settings import Layers
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import InputError

LabelledVectors = tuple[Tensor, Any]


class EmbeddedDataset(Dataset[LabelledVectors]):
    """For each list of words its vectors, (L, T, D) or for a single layer (T, D), and its label.

    A `DataLoader` asks for a whole batch at once, which is embedded at once. Nothing is kept.
    """

    def __init__(
        self,
        embedder: WordEmbedder,
        sentences: Sequence[Sequence[str]],
        labels: Sequence[Any] | None = None,
        *,
        layers: Layers = "all",
    ) -> None:
        if labels is not None and len(labels) != len(sentences):
            raise InputError(f"{len(sentences)} sentences have {len(labels)} labels.")
        self._embedder, self._layers = embedder, layers
        self._sentences, self._labels = sentences, labels

    def __len__(self) -> int:
        return len(self._sentences)

    def __getitem__(self, index: int) -> LabelledVectors:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[LabelledVectors]:
        """What the `DataLoader` calls, once for each batch."""
        sentences = iter([self._sentences[index] for index in indices])
        found = self._embedder.embed(sentences, layers=self._layers)
        labels = [None if self._labels is None else self._labels[index] for index in indices]
        return [(torch.from_numpy(s.vectors), y) for s, y in zip(found, labels, strict=True)]


def pad(items: Sequence[LabelledVectors]) -> tuple[Tensor, Tensor, list[Any]]:
    """Vectors (B, ..., T, D) with zeros after short sentences, a mask (B, T), and the labels."""
    lengths = torch.tensor([vectors.shape[-2] for vectors, _ in items])
    longest = int(lengths.max())
    mask = torch.arange(longest) < lengths[:, None]
    first = items[0][0]
    padded = first.new_zeros(len(items), *first.shape[:-2], longest, first.shape[-1])
    for row, (vectors, _) in enumerate(items):
        padded[row, ..., : vectors.shape[-2], :] = vectors
    return padded, mask, [label for _, label in items]
