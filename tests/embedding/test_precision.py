"""How near bfloat16 comes to float32, on models that have learnt something."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pretraining.making import rule_text, tiny_values

from embedding.making import layers_of, lowest_cosine
from polyseme.config import build
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import Vectors
from polyseme.model import Model, ModelConfig

SENTENCES = [line.split() for line in rule_text(48).splitlines()]
CONTEXTUALIZERS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm", "num_layers": 2, "proj_size": 32, "hidden_size": 64},
    "transformer": {
        "kind": "transformer",
        "num_layers": 2,
        "dim": 32,
        "num_heads": 2,
        "ffn_dim": 64,
    },
}


def trained(contextualizer: str, steps: int = 60) -> Model:
    """A tiny model that has learnt most of the rule: one batch, again and again."""
    encoder = {**tiny_values()["encoder"], "contextualizer": CONTEXTUALIZERS[contextualizer]}
    config = build(ModelConfig, tiny_values(encoder=encoder))
    words = sorted({word for sentence in SENTENCES for word in sentence})
    vocabulary = vocabulary_of(config, words)
    torch.manual_seed(1)
    model = Model.new(config, vocabulary, None)
    network = model.network
    targets = network.objective.make_targets(
        vocabulary.batch(SENTENCES), vocabulary, np.random.default_rng(0)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for _ in range(steps):
        loss = torch.stack(list(network(targets).values())).sum() / len(SENTENCES)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model


def vocabulary_of(config: ModelConfig, words: list[str]) -> Vocabulary:
    letters = "".join(sorted(set("".join(words))))
    return Vocabulary(config.vocabulary, pa.array(words), np.ones(len(words), np.int64), letters)


@pytest.mark.parametrize("contextualizer", CONTEXTUALIZERS)
def test_half_the_bits_leave_vectors_where_they_are(contextualizer: str) -> None:
    model = trained(contextualizer)
    whole = layers_of(Embedder(model, device="cpu"), SENTENCES)
    half = layers_of(Embedder(model, device="cpu", precision="bfloat16"), SENTENCES)
    assert lowest_of(half, whole) >= 0.9999
    assert any(not np.array_equal(a, b) for a, b in zip(half, whole, strict=True))


def test_vectors_of_en_mini_in_bfloat16_have_a_cosine_of_0_99998_to_those_in_float32() -> None:
    model = Model.load(Path(__file__).parents[2] / "models" / "en-mini")
    text = "The bank raised its interest rate again , and the old bridge fell into the river ."
    words = text.split()
    sentences = [words[begin:] + words[:begin] for begin in range(len(words))]
    whole = layers_of(Embedder(model, device="cpu"), sentences)
    half = layers_of(Embedder(model, device="cpu", precision="bfloat16"), sentences)
    assert lowest_of(half, whole) >= 0.99998


def test_fewer_bits_than_that_would_be_noticed() -> None:
    model = trained("lstm")
    whole = layers_of(Embedder(model, device="cpu"), SENTENCES)
    with torch.no_grad():
        for weight in model.network.parameters():  # four bits of a fraction instead of seven
            fraction, exponent = torch.frexp(weight)
            weight.copy_(torch.ldexp((fraction * 16).round() / 16, exponent))
    rough = layers_of(Embedder(model, device="cpu"), SENTENCES)
    assert lowest_of(rough, whole) < 0.9999


def lowest_of(found: list[Vectors], expected: list[Vectors]) -> float:
    return min(lowest_cosine(a, b) for a, b in zip(found, expected, strict=True))
