"""How near bfloat16 comes to float32, on models that have learnt something."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pretraining.making import rule_text, tiny_values

from polyseme.batches import Lexicon
from polyseme.config import build
from polyseme.model import Model, ModelConfig
from polyseme.vectors.embedded import Vectors
from polyseme.vectors.embedder import Embedder
from vectors.making import layers_of, lowest_cosine

SENTENCES = [line.split() for line in rule_text(48).splitlines()]
CONTEXTS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm", "layers": 2, "width": 32, "cells": 64},
    "transformer": {"kind": "transformer", "layers": 2, "width": 32, "heads": 2, "inner": 64},
}


def trained(context: str, steps: int = 60) -> Model:
    """A tiny model that has learnt most of the rule: one batch, again and again."""
    encoder = {**tiny_values()["encoder"], "context": CONTEXTS[context]}
    config = build(ModelConfig, tiny_values(encoder=encoder))
    words = sorted({word for sentence in SENTENCES for word in sentence})
    lexicon = lexicon_of(config, words)
    torch.manual_seed(1)
    model = Model.new(config, lexicon, {})
    network = model.network
    question = network.objective.ask(lexicon.batch(SENTENCES), lexicon, np.random.default_rng(0))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for _ in range(steps):
        loss = torch.stack(list(network(question).values())).sum() / len(SENTENCES)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model


def lexicon_of(config: ModelConfig, words: list[str]) -> Lexicon:
    letters = "".join(sorted(set("".join(words))))
    return Lexicon(config.lexicon, pa.array(words), np.ones(len(words), np.int64), letters)


@pytest.mark.parametrize("context", CONTEXTS)
def test_half_the_bits_leave_vectors_where_they_are(context: str) -> None:
    model = trained(context)
    whole = layers_of(Embedder(model, device="cpu"), SENTENCES)
    half = layers_of(Embedder(model, device="cpu", precision="bfloat16"), SENTENCES)
    assert lowest_of(half, whole) >= 0.9999
    assert any(not np.array_equal(a, b) for a, b in zip(half, whole, strict=True))


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
