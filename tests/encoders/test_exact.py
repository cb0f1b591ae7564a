"""Bits that depend on the sentence alone: in any company, at any place, beside any padding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from polyseme.batches import Batch, Lexicon, LexiconConfig
from polyseme.config import build
from polyseme.encoders import exact, lstm
from polyseme.encoders.encoder import Encoder, EncoderConfig

ROWS = 8
WORDS = ["a", "cab", "hijack", "bad", "idea", "jade", "fig"]
FILTERS = {
    "character_width": 5,
    "filters": [{"width": 1, "number": 7}, {"width": 3, "number": 30}],
    "highways": 2,
}
INPUTS: dict[str, dict[str, Any]] = {
    "lookup": {"kind": "lookup", "width": 37},
    "characters": {"kind": "characters", "width": 29, **FILTERS},
    "tanh": {"kind": "characters", "width": 36, "activation": "tanh", **FILTERS},
}
CONTEXTS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm", "width": 36, "cells": 77, "cell_clip": 0.5, "output_clip": 0.5},
    "plain-lstm": {"kind": "lstm", "width": 36},
    "rotary": {"kind": "transformer", "width": 36, "layers": 2, "heads": 3, "inner": 50},
    "none": {"kind": "none", "width": 36},
}
CONTEXTS["learned"] = {**CONTEXTS["rotary"], "positions": "learned", "longest": 101}
CASES = [
    *((context, direction, "characters") for context in CONTEXTS for direction in ("apart",)),
    *((context, "together", "lookup") for context in CONTEXTS if context != "none"),
    *((context, "forward", "tanh") for context in CONTEXTS),
]


def encoder_of(context: str, direction: str, reading: str) -> Encoder:
    torch.manual_seed(0)
    told = {"input": INPUTS[reading], "context": CONTEXTS[context], "direction": direction}
    encoder = Encoder(build(EncoderConfig, told), vocabulary=20, alphabet=18).eval()
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
    return encoder


def lexicon() -> Lexicon:
    config = LexiconConfig(max_characters=30)
    return Lexicon(config, pa.array(WORDS), np.ones(len(WORDS), np.int64), "abcdefghij")


def drawn(random: np.random.Generator, longest: int) -> list[str]:
    return [str(word) for word in random.choice(WORDS, random.integers(1, longest + 1))]


@torch.no_grad()
def layers_of(encoder: Encoder, batch: Batch) -> Tensor:
    distinct = encoder.inputs(batch.ids, batch.characters, exact=True)
    return encoder.in_context(distinct, batch, exact=True).layers


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_sentence_has_the_same_bits_in_every_company(case: tuple[str, str, str]) -> None:
    encoder, random = encoder_of(*case), np.random.default_rng(0)
    mine = ["cab", "idea", "a", "bad", "cab"]
    filled = [mine, *[["a"]] * (ROWS - 1)]
    expected = layers_of(encoder, lexicon().batch(filled))[:, 0, : len(mine) + 2]
    for place, longest in enumerate((1, 5, 29, 30, 31, 62, 99, 3)):
        others = [drawn(random, longest) for _ in range(ROWS - 1)]
        if place == 4:
            others[0] = ["incomprehensible", *others[0]]
        batch = lexicon().batch([*others[:place], mine, *others[place:]])
        found = layers_of(encoder, batch)[:, place, : len(mine) + 2]
        assert torch.equal(found, expected), (place, longest)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_exact_vectors_are_the_ordinary_ones_but_for_rounding(case: tuple[str, str, str]) -> None:
    encoder, random = encoder_of(*case), np.random.default_rng(1)
    batch = lexicon().batch([drawn(random, 40) for _ in range(ROWS)])
    with torch.no_grad():
        ordinary = encoder(batch).layers
    torch.testing.assert_close(layers_of(encoder, batch), ordinary, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("direction", ["forward", "apart", "together"])
def test_an_lstm_asked_to_be_exact_takes_the_exact_path(
    direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the sizes of a test the ordinary path may have the same bits by luck."""
    encoder = encoder_of("lstm", direction, "lookup")
    batch = lexicon().batch([["cab", "a"]] * ROWS)
    layers_of(encoder, batch)

    def ordinary(*_: Any, **__: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(lstm, "recur", ordinary)
    layers_of(encoder, batch)
    with pytest.raises(NotImplementedError):
        encoder(batch)


@pytest.mark.parametrize("context", ["lstm", "rotary"])
def test_ordinary_vectors_do_change_with_the_company(context: str) -> None:
    """The control: at these sizes bits do move, so the first test can fail."""
    encoder, random = encoder_of(context, "apart", "characters"), np.random.default_rng(0)
    mine = ["cab", "idea", "a", "bad", "cab"]
    found = []
    for number, longest in ((1, 1), (ROWS, 31), (2 * ROWS, 99)):
        batch = lexicon().batch([mine, *(drawn(random, longest) for _ in range(number - 1))])
        with torch.no_grad():
            found.append(encoder(batch).layers[:, 0, : len(mine) + 2])
    assert not all(torch.equal(each, found[0]) for each in found)


def test_distinct_words_that_are_not_in_the_batch_change_nothing() -> None:
    encoder = encoder_of("lstm", "apart", "characters")
    batch = lexicon().batch([["cab", "a"]] * ROWS)
    wider = lexicon().batch([["cab", "a"], WORDS])
    where = [wider.ids.tolist().index(word) for word in batch.ids.tolist()]
    words = torch.tensor(where)[batch.words]
    more = replace(batch, words=words, ids=wider.ids, characters=wider.characters)
    assert torch.equal(layers_of(encoder, more), layers_of(encoder, batch))


@pytest.mark.parametrize(
    "function", [torch.sigmoid, torch.tanh, torch.exp], ids=lambda f: f.__name__
)
def test_a_function_gives_the_same_bits_at_every_place(function: Any) -> None:
    values = torch.randn(40_001)
    whole = exact.evenly(function, values)
    for begin, end in ((0, 1), (7, 40), (39_990, 40_001), (3, 33_000)):
        assert torch.equal(exact.evenly(function, values[begin:end]), whole[begin:end])


@pytest.mark.parametrize("number", [1, 31, 32, 33, 70])
def test_every_multiplication_has_as_many_rows(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which bits a smaller one would have is the library's secret, and may change."""
    vectors, weight, bias = torch.randn(number, 5), torch.randn(3, 5), torch.randn(3)
    expected = vectors @ weight.T + bias
    rows: list[int] = []
    whole = functional.linear

    def multiply(some: Tensor, *others: Tensor) -> Tensor:
        rows.append(len(some))
        return whole(some, *others)

    monkeypatch.setattr(functional, "linear", multiply)
    torch.testing.assert_close(exact.linear(vectors, weight, bias), expected)
    assert rows == [exact.ROWS] * len(rows)
    assert sum(rows) >= number
