"""Tiny embedders of every kind, and ways to break them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from hypothesis import strategies as st
from laws.cases import WORDS, make
from pretraining.making import tiny_values
from torch import Tensor

from polyseme.config import build
from polyseme.data.batch import Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import Vectors
from polyseme.encoders.encoded import Encoded
from polyseme.model import Model, ModelConfig
from polyseme.text.preprocessing import Preparation
from polyseme.text.settings import CorpusConfig

POINTS = {
    "elmo": ("lstm", "separate", "bidirectional", "word+characters", "full"),
    "plain elmo": ("plain-lstm", "separate", "bidirectional", "bytes", "full"),
    "lstm forward": ("lstm", "forward", "causal", "unicode", "full"),
    "lstm joint": ("lstm", "joint", "masked", "word+characters", "full"),
    "elmo of transformers": ("rotary", "separate", "bidirectional", "unicode", "full"),
    "gpt": ("learned", "forward", "causal", "word", "full"),
    "bert": ("rotary", "joint", "pairs", "word+characters", "full"),
    "word2vec": ("none", "forward", "cbow", "word", "full"),
    "words from characters": ("none", "forward", "causal", "unicode", "full"),
}
ALL_WORDS = [*WORDS, "unseen", "strange", "x" * 40, "她", "ñandú", "12.5", "-"]
Sentences = list[list[str]]


def tiny(point: str, **options: Any) -> Embedder:
    """An embedder with random weights, the same at every call."""
    return Embedder(make(*POINTS[point]).model(), **{"device": "cpu", **options})


def reading(words: str, *, encoder: dict[str, Any] | None = None, **corpus: Any) -> Embedder:
    """A tiny ELMo that knows these words and reads raw text prepared by these settings."""
    text = build(CorpusConfig, corpus)
    preparation = Preparation.of(text)
    config = build(ModelConfig, tiny_values(**({"encoder": encoder} if encoder else {})))
    known = sorted(set(words.split()))
    letters = "".join(sorted(set("".join(known))))
    vocabulary = Vocabulary(
        config.vocabulary, pa.array(known), np.ones(len(known), np.int64), letters
    )
    torch.manual_seed(0)
    return Embedder(Model.new(config, vocabulary, preparation), device="cpu")


def layers_of(embedder: Embedder, sentences: Sequence[Sequence[str]], **told: Any) -> list[Vectors]:
    """(L, T, D) for each sentence."""
    return list(embedder.stream(sentences, **told))


def some_sentences(most: int = 8) -> st.SearchStrategy[Sentences]:
    """Sentences of 0 to 30 words, some of them unknown or overlong."""
    words = st.lists(st.sampled_from(ALL_WORDS), min_size=0, max_size=30)
    return st.lists(words, min_size=1, max_size=most)


Change = Callable[[Encoded, Batch], tuple[Tensor, ...]]


def broken(embedder: Embedder, change: Change) -> Embedder:
    """The same, what its encoder gives being changed on the way out."""
    encoder = embedder.model.network.encoder
    whole = encoder.contextualize

    def contextualize(distinct: Tensor, batch: Batch, **told: bool) -> Encoded:
        encoded = whole(distinct, batch, **told)
        return Encoded(change(encoded, batch), encoded.mask, encoded.is_separate)

    encoder.contextualize = contextualize  # type: ignore[method-assign]
    return embedder


def normalised_over_the_batch(encoded: Encoded, batch: Batch) -> tuple[Tensor, ...]:
    """As batch normalisation in training: every vector depends on its neighbours."""
    return tuple(layer - layer[batch.mask].mean(dim=0) for layer in encoded.hidden_states)


def padding_read(encoded: Encoded, batch: Batch) -> tuple[Tensor, ...]:
    """As a backward stack that begins with the padding."""
    share = batch.lengths[:, None, None] / batch.words.shape[1]
    return tuple(layer * (1 - 1e-3 * (1 - share)) for layer in encoded.hidden_states)


def last_bit_of_others(encoded: Encoded, distinct: Tensor) -> Encoded:
    """As arithmetic that rounds otherwise in other company: by the last bit, or a few times it."""
    factor = 1 + 2**-23 * (len(distinct) % 4)
    layers = tuple(layer * factor for layer in encoded.hidden_states)
    return Encoded(layers, encoded.mask, encoded.is_separate)


class CarriedOver:
    """As the old programs: a state that is kept from call to call."""

    def __init__(self) -> None:
        self.state = torch.zeros(())

    def __call__(self, encoded: Encoded, batch: Batch) -> tuple[Tensor, ...]:
        before = self.state
        self.state = encoded.top[batch.mask].mean()
        return tuple(layer + 0.01 * before for layer in encoded.hidden_states)


def neighbours_seen(encoded: Encoded, batch: Batch) -> tuple[Tensor, ...]:
    """As a language model that has seen the words it predicts."""
    return tuple(layer + 1e-3 * layer.mean(dim=1, keepdim=True) for layer in encoded.hidden_states)


def distance(found: Vectors, expected: Vectors) -> float:
    """The largest difference, as a share of the root mean square."""
    if not expected.size:
        assert found.shape == expected.shape
        return 0.0
    size = float(np.sqrt(np.square(expected, dtype=np.float64).mean()))
    return float(np.abs(found - expected).max()) / size


def lowest_cosine(found: Vectors, expected: Vectors) -> float:
    """Of any word in any layer."""
    if not expected.size:
        return 1.0
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    products = (found * expected).sum(axis=-1)
    sizes = np.linalg.norm(found, axis=-1) * np.linalg.norm(expected, axis=-1)
    return float((products / sizes).min())
