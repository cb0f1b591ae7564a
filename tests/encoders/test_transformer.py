"""Attention, against one that looks at one pair of words at a time."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from polyseme.encoders.encoded import Direction
from polyseme.encoders.transformer import Transformer, TransformerConfig
from polyseme.errors import ModelError

ROTARY = TransformerConfig(num_layers=2, dim=8, num_heads=2, ffn_dim=12)
LEARNED = TransformerConfig(
    num_layers=2, dim=8, num_heads=2, ffn_dim=12, positions="learned", max_positions=6
)
CONFIGS = pytest.mark.parametrize("config", [ROTARY, LEARNED], ids=["rotary", "learned"])


def transformer(config: TransformerConfig, direction: Direction) -> Transformer:
    torch.manual_seed(0)
    module = Transformer(config, direction).double().eval()
    with torch.no_grad():
        for weight in module.parameters():  # far from the gentle beginning, where all looks alike
            weight.add_(0.3 * torch.randn_like(weight))
    return module


def rotated(vector: Tensor, position: int) -> Tensor:
    """Rotary positions: the numbers i and i + half as one complex number, rotated."""
    half = len(vector) // 2
    number = torch.complex(vector[:half], vector[half:])
    angle = torch.tensor([position * 10_000.0 ** (-2 * i / len(vector)) for i in range(half)])
    number = number * torch.polar(torch.ones(half, dtype=torch.double), angle.double())
    return torch.cat([number.real, number.imag])


def plain(
    module: Transformer, stack: int, words: Tensor, config: TransformerConfig
) -> list[Tensor]:
    """Every layer for one sentence (T, D), word by word."""
    weights = dict(module.stacks[stack].state_dict())
    size, number = config.dim // config.num_heads, len(words)
    if config.positions == "learned":
        words = words + weights["position_embedding.weight"][:number]
    layers = []
    for block in range(config.num_layers):
        w = {k.removeprefix(f"blocks.{block}."): v for k, v in weights.items()}

        def norm(vector: Tensor, name: str, w: dict[str, Tensor] = w) -> Tensor:
            centred = vector - vector.mean()
            scaled = centred / math.sqrt(float(centred.square().mean()) + 1e-5)
            return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

        parts = [w["qkv.weight"] @ norm(word, "attention_norm") + w["qkv.bias"] for word in words]
        results = []
        for t in range(number):
            seen = []
            for head in range(config.num_heads):
                cut = slice(head * size, (head + 1) * size)
                query, keys, values = (
                    parts[t][: config.dim][cut],
                    [part[config.dim : 2 * config.dim][cut] for part in parts],
                    [part[2 * config.dim :][cut] for part in parts],
                )
                if config.positions == "rotary":
                    query = rotated(query, t)
                    keys = [rotated(key, position) for position, key in enumerate(keys)]
                reach = number if module.direction == "joint" else t + 1
                scores = [math.exp(float(query @ keys[u]) / math.sqrt(size)) for u in range(reach)]
                seen.append(sum(s / sum(scores) * values[u] for u, s in enumerate(scores)))
            word = words[t] + w["out_proj.weight"] @ torch.cat(seen) + w["out_proj.bias"]
            hidden = w["fc1.weight"] @ norm(word, "ffn_norm") + w["fc1.bias"]
            word = word + w["fc2.weight"] @ functional.gelu(hidden) + w["fc2.bias"]
            results.append(word)
        words = torch.stack(results)
        layers.append(words)
    layers[-1] = functional.layer_norm(
        words, (config.dim,), weights["norm.weight"], weights["norm.bias"]
    )
    return layers


@CONFIGS
@pytest.mark.parametrize("direction", ["forward", "separate", "joint"])
def test_layers_are_those_of_a_plain_loop_over_words(
    config: TransformerConfig, direction: Direction
) -> None:
    module, vectors = transformer(config, direction), torch.randn(2, 5, 8, dtype=torch.double)
    with torch.no_grad():
        found = module(vectors, torch.tensor([5, 3]))
        for row, length in ((0, 5), (1, 3)):
            words = vectors[row, :length]
            expected = plain(module, 0, words, config)
            if direction == "separate":
                back = [layer.flip(0) for layer in plain(module, 1, words.flip(0), config)]
                expected = [torch.cat(both, -1) for both in zip(expected, back, strict=True)]
            for layer, wanted in zip(found, expected, strict=True):
                assert torch.allclose(layer[row, :length], wanted, atol=1e-6)


def test_a_sentence_beyond_the_learned_positions_is_refused_in_words() -> None:
    module = transformer(LEARNED, "forward")
    module(torch.randn(1, 6, 8, dtype=torch.double), torch.tensor([6]))
    with pytest.raises(
        ModelError, match=r"7 words, special tokens counted.*embeddings for 6.*Split"
    ):
        module(torch.randn(1, 7, 8, dtype=torch.double), torch.tensor([7]))


def test_rotary_positions_have_no_longest_sentence() -> None:
    module = transformer(ROTARY, "forward")
    with torch.no_grad():
        (_, top) = module(torch.randn(1, 700, 8, dtype=torch.double), torch.tensor([700]))
    assert torch.isfinite(top).all()


def test_a_new_transformer_begins_close_to_its_input() -> None:
    torch.manual_seed(0)
    module, vectors = Transformer(ROTARY, "forward"), torch.randn(4, 9, 8)
    with torch.no_grad():
        below = module(vectors, torch.full((4,), 9))[0]
    assert float((below - vectors).square().mean()) < 0.01
