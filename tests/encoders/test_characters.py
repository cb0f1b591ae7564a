"""The character encoder, against a slow one that takes one word and one window at a time."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from polyseme.data.vocabulary import Vocabulary, VocabularyConfig
from polyseme.encoders.inputs import CharacterEncoder, CharactersConfig, FilterConfig

CONFIG = CharactersConfig(
    char_dim=4,
    filters=tuple(FilterConfig(width=width, num_filters=width + 1) for width in (1, 2, 3, 7)),
    num_highway_layers=2,
    dim=6,
)
WORDS = ["a", "cab", "hijack", "incomprehensibilities" * 3, "水", "bad"]


def vocabulary(kind: str) -> Vocabulary:
    config = VocabularyConfig.model_validate({"characters": kind, "max_characters": 30})
    return Vocabulary(config, pa.array(["a"]), np.ones(1, np.int64), "abcdefghij")


def by_hand(encoder: CharacterEncoder, word: list[int]) -> list[float]:
    """One word's vector in plain numbers."""
    weights = {name: weight.double() for name, weight in encoder.state_dict().items()}
    table = weights["char_embedding.weight"].tolist()
    letters = [table[c - 1] if c > 0 else [0.0] * CONFIG.char_dim for c in word]
    features = []
    for number, filters in enumerate(CONFIG.filters):
        weight, bias = weights[f"filters.{number}.weight"], weights[f"filters.{number}.bias"]
        for one in range(filters.num_filters):
            sums = [
                float(bias[one])
                + sum(
                    float(weight[one, e, k]) * letters[begin + k][e]
                    for k in range(filters.width)
                    for e in range(CONFIG.char_dim)
                )
                for begin in range(len(letters) - filters.width + 1)
            ]
            features.append(max(0.0, *sums))
    for number in range(CONFIG.num_highway_layers):
        prefix = f"highways.{number}.linear"
        both = _line(weights[f"{prefix}.weight"], weights[f"{prefix}.bias"], features)
        changed, gates = both[: len(features)], both[len(features) :]
        opened = [1 / (1 + math.exp(-gate)) for gate in gates]
        features = [
            gate * old + (1 - gate) * max(0.0, new)
            for gate, old, new in zip(opened, features, changed, strict=True)
        ]
    return _line(weights["projection.weight"], weights["projection.bias"], features)


def _line(weight: Tensor, bias: Tensor, given: list[float]) -> list[float]:
    return [
        sum(w * g for w, g in zip(row, given, strict=True)) + b
        for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
    ]


@pytest.mark.parametrize("kind", ["unicode", "bytes"])
def test_words_come_out_as_a_plain_loop_over_words_and_windows_has_them(kind: str) -> None:
    torch.manual_seed(0)
    words = vocabulary(kind)
    encoder = CharacterEncoder(CONFIG, num_chars=words.num_characters)
    char_ids = words.batch([WORDS]).char_ids
    found = encoder(char_ids)
    expected = torch.tensor([by_hand(encoder, word) for word in char_ids.tolist()])
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_new_highway_carries_on_more_than_it_changes() -> None:
    weights = CharacterEncoder(CONFIG, num_chars=20).state_dict()
    gates = [weights[f"highways.{number}.linear.bias"].chunk(2)[1] for number in range(2)]
    assert all(bool((gate == 1).all()) for gate in gates)


@pytest.mark.parametrize("rows", [1, 6, 700])
@pytest.mark.parametrize("columns", [7, 8, 30])
def test_words_that_are_only_read_come_out_as_in_training(rows: int, columns: int) -> None:
    """No gradient: another way. With 7 columns the widest filter sees a word but once."""
    torch.manual_seed(0)
    encoder = CharacterEncoder(CONFIG, num_chars=20)
    char_ids = torch.randint(0, 20, (rows, columns))
    in_training = encoder(char_ids)
    encoder.eval()
    with torch.no_grad():
        torch.testing.assert_close(encoder(char_ids), in_training, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 5, 9, 15])
def test_words_that_are_only_read_keep_their_bits_beside_others(length: int) -> None:
    torch.manual_seed(0)
    encoder = CharacterEncoder(CONFIG, num_chars=20).eval()
    char_ids = torch.full((32, 16), 19)
    char_ids[0, :3] = torch.tensor([1, 2, 3])
    with torch.no_grad():
        before = encoder(char_ids)
        char_ids[1:, :length] = torch.randint(0, 19, (31, length))
        assert torch.equal(encoder(char_ids)[0], before[0])


@pytest.mark.parametrize("length", [0, 1, 4, 9, 10, 15])
def test_padding_after_the_longest_word_is_looked_at_once(length: int) -> None:
    torch.manual_seed(0)
    encoder = CharacterEncoder(CONFIG, num_chars=20)
    char_ids = torch.full((9, 16), 19)
    char_ids[:, :length] = torch.randint(0, 19, (9, length))
    in_training = encoder(char_ids)
    encoder.eval()
    with torch.no_grad():
        torch.testing.assert_close(encoder(char_ids), in_training, rtol=1e-5, atol=1e-5)


def test_in_bfloat16_words_that_are_only_read_point_the_same_way() -> None:
    torch.manual_seed(0)
    encoder = CharacterEncoder(CONFIG, num_chars=20).eval()
    char_ids = torch.randint(0, 20, (50, 16))
    with torch.no_grad():
        expected = encoder(char_ids)
        with torch.autocast("cpu", torch.bfloat16):
            found = encoder(char_ids).float()
    assert float(torch.cosine_similarity(found, expected, dim=-1).min()) > 0.999
