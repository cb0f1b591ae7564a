"""Sentences as a dataset."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from polyseme.embedding.embedder import Embedder
from polyseme.embedding.for_torch import EmbeddedDataset, pad
from polyseme.embedding.settings import Layers
from polyseme.errors import InputError

SENTENCES = [["The", "cat"], ["The", "old", "dog", "barks"], [], ["hen"]]
LABELS = [0, 1, 2, 3]


def test_an_item_is_a_sentences_vectors_and_its_label(english: Embedder) -> None:
    dataset = EmbeddedDataset(english, SENTENCES, LABELS)
    assert len(dataset) == 4
    vectors, label = dataset[1]
    assert label == 1
    assert np.array_equal(vectors.numpy(), english.embed([SENTENCES[1]])[0].vectors)


def test_a_loader_gives_padded_batches_with_a_mask(english: Embedder) -> None:
    dataset = EmbeddedDataset(english, SENTENCES, LABELS, layers="top")
    loader = DataLoader(dataset, batch_size=3, collate_fn=pad)
    first, last = list(loader)
    vectors, mask, labels = first
    assert vectors.shape == (3, 4, english.dim)
    assert mask.sum(dim=1).tolist() == [2, 4, 0]
    assert labels == [0, 1, 2]
    assert not vectors[~mask].any()
    assert last[0].shape == (1, 1, english.dim)


def test_a_batch_is_embedded_at_once(english: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, whole = [], english.embed

    def embed(sentences: Any, *, layers: Layers) -> Any:
        calls.append(layers)
        return whole(sentences, layers=layers)

    monkeypatch.setattr(english, "embed", embed)
    list(DataLoader(EmbeddedDataset(english, SENTENCES), batch_size=4, collate_fn=pad))
    assert calls == ["all"]


def test_all_layers_are_padded_alike(english: Embedder) -> None:
    dataset = EmbeddedDataset(english, SENTENCES)
    vectors, mask, labels = pad([dataset[0], dataset[1]])
    assert vectors.shape == (2, 3, 4, english.dim)
    assert torch.equal(vectors[0, :, :2], dataset[0][0])
    assert mask.tolist() == [[True, True, False, False], [True] * 4]
    assert labels == [None, None]


def test_labels_must_be_as_many_as_sentences(english: Embedder) -> None:
    with pytest.raises(InputError, match="4 sentences have 1 labels"):
        EmbeddedDataset(english, SENTENCES, [1])
