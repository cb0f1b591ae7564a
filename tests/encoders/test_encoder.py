"""The encoder as a whole: its sizes, and how a batch goes through it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from polyseme.config import build
from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.encoders.encoded import reverse_sequences
from polyseme.encoders.encoder import Encoder, EncoderConfig
from polyseme.presets import PRESETS

LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=5)


@given(lengths=LENGTHS)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_a_turned_sentence_stands_back_to_front_and_padding_stays(lengths: list[int]) -> None:
    vectors = torch.randn(len(lengths), 8, 3)
    turned = reverse_sequences(vectors, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        expected = [*reversed(vectors[row, :length].tolist()), *vectors[row, length:].tolist()]
        assert turned[row].tolist() == expected


WORDS = ["the", "of", "word"]


def vocabulary() -> Vocabulary:
    return Vocabulary(VocabularyConfig(), pa.array(WORDS), np.ones(3, np.int64), "abcdefghij")


def encoder_of(**values: Any) -> Encoder:
    torch.manual_seed(0)
    told = {"input": {"kind": "word", "dim": 8}, "contextualizer": {"kind": "lstm", "proj_size": 8}}
    config = build(EncoderConfig, {**told, **values})
    return Encoder(config, vocab_size=8, num_chars=18).eval()


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
        encoder = Encoder(PRESETS[name].model.encoder, vocab_size=1, num_chars=262)
    assert sum(weight.numel() for weight in encoder.parameters()) == parameters


def test_each_distinct_word_is_built_from_characters_once() -> None:
    filters = {"char_dim": 4, "filters": [{"width": 2, "num_filters": 3}], "dim": 8}
    encoder = encoder_of(input={"kind": "characters", **filters})
    rows: list[int] = []
    characters = encoder.inputs.characters
    assert characters is not None
    characters.register_forward_hook(lambda _module, given, _out: rows.append(len(given[0])))
    encoder(vocabulary().batch([["bad", "idea", "bad"]] * 20 + [["bad"] * 50]))
    assert rows == [5]  # bad, idea, both marks, padding


def test_a_sentence_alone_is_read_as_the_first_of_a_pair() -> None:
    encoder = encoder_of(direction="joint", segments=True)
    batch = vocabulary().batch([["the", "word"], ["of"]])
    first = replace(batch, segments=torch.zeros_like(batch.words))
    second = replace(batch, segments=torch.ones_like(batch.words))
    with torch.no_grad():
        alone = encoder(batch).top
        assert torch.equal(alone, encoder(first).top)
        assert not torch.allclose(alone, encoder(second).top)


def test_layer_0_knows_nothing_of_segments() -> None:
    encoder = encoder_of(direction="joint", segments=True)
    batch = vocabulary().batch([["the", "the"]])
    words = encoder(batch).hidden_states[0]
    assert torch.equal(words[0, 1], words[0, 2])


def test_parts_of_another_dimension_are_projected() -> None:
    encoder = encoder_of(input={"kind": "word", "dim": 5})
    assert isinstance(encoder.inputs.projection, nn.Linear)
    assert encoder.inputs.projection.weight.shape == (8, 5)
    assert encoder_of().inputs.projection is None
