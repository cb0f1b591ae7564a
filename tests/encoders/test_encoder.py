"""The encoder as a whole: its sizes, and how a batch goes through it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from polyseme.batches import Lexicon, LexiconConfig
from polyseme.config import build
from polyseme.encoders.encoder import Encoder, EncoderConfig
from polyseme.errors import ConfigError
from polyseme.presets import PRESETS

WORDS = ["the", "of", "word"]


def lexicon() -> Lexicon:
    return Lexicon(LexiconConfig(), pa.array(WORDS), np.ones(3, np.int64), "abcdefghij")


def encoder_of(**values: Any) -> Encoder:
    torch.manual_seed(0)
    told = {"input": {"kind": "lookup", "width": 8}, "context": {"kind": "lstm", "width": 8}}
    config = build(EncoderConfig, {**told, **values})
    return Encoder(config, vocabulary=8, alphabet=18).eval()


@pytest.mark.parametrize(
    ("name", "parameters"),
    # As AllenNLP counts the weights of the published files.
    [
        ("elmo-original", 93_600_848),
        ("elmo-medium", 28_027_728),
        ("elmo-small", 13_593_296),
    ],
)
def test_the_published_encoders_have_the_published_sizes(name: str, parameters: int) -> None:
    with torch.device("meta"):
        encoder = Encoder(PRESETS[name].model.encoder, vocabulary=1, alphabet=262)
    assert sum(weight.numel() for weight in encoder.parameters()) == parameters


def test_each_distinct_word_is_spelt_out_once() -> None:
    filters = {"character_width": 4, "filters": [{"width": 2, "number": 3}], "width": 8}
    encoder = encoder_of(input={"kind": "characters", **filters})
    rows: list[int] = []
    characters = encoder.inputs.characters
    assert characters is not None
    characters.register_forward_hook(lambda _module, given, _out: rows.append(len(given[0])))
    encoder(lexicon().batch([["bad", "idea", "bad"]] * 20 + [["bad"] * 50]))
    assert rows == [5]  # bad, idea, both marks, padding


def test_a_sentence_alone_is_read_as_the_first_of_a_pair() -> None:
    encoder = encoder_of(direction="together", segments=True)
    batch = lexicon().batch([["the", "word"], ["of"]])
    first = replace(batch, segments=torch.zeros_like(batch.words))
    second = replace(batch, segments=torch.ones_like(batch.words))
    with torch.no_grad():
        alone = encoder(batch).top
        assert torch.equal(alone, encoder(first).top)
        assert not torch.allclose(alone, encoder(second).top)


def test_layer_0_does_not_tell_segments_apart() -> None:
    encoder = encoder_of(direction="together", segments=True)
    batch = lexicon().batch([["the", "the"]])
    words = encoder(batch).each[0]
    assert torch.equal(words[0, 1], words[0, 2])


def test_apart_layer_0_is_the_word_in_both_halves() -> None:
    forward, backward = encoder_of()(lexicon().batch([WORDS])).each[0].chunk(2, dim=-1)
    assert torch.equal(forward, backward)


def test_dropout_is_for_training_only() -> None:
    encoder, batch = encoder_of(dropout=0.5), lexicon().batch([WORDS])
    assert torch.equal(encoder(batch).top, encoder(batch).top)
    encoder.train()
    assert not torch.equal(encoder(batch).top, encoder(batch).top)


def test_parts_of_another_width_are_projected() -> None:
    encoder = encoder_of(input={"kind": "lookup", "width": 5})
    assert isinstance(encoder.inputs.projection, nn.Linear)
    assert encoder.inputs.projection.weight.shape == (8, 5)
    assert encoder_of().inputs.projection is None


def test_an_lstm_that_reads_together_cannot_have_an_odd_width() -> None:
    with pytest.raises(ConfigError, match="7 is odd"):
        encoder_of(direction="together", context={"kind": "lstm", "width": 7})


def test_a_table_knows_its_width() -> None:
    assert encoder_of().config.table_width == 8
    assert encoder_of(input={"kind": "characters", "width": 8}).config.table_width == 0
    fused = {"kind": "fused", "lookup": 6, "characters": {"width": 2}}
    assert encoder_of(input=fused).config.table_width == 6
    assert encoder_of(input=fused).config.widest_filter == 7
