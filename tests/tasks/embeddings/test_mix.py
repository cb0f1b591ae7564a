"""The layer mix.

Dropout by bytes.
"""

import math

import pytest
import torch

from polyseme.errors import ModelError
from polyseme.tasks.embeddings.features import ByteDropout, LayerMix, MixConfig

PLAIN = MixConfig(dropout=0)


def mix_of(logits: list[float], gamma: float = 1.0, **config: object) -> LayerMix:
    mix = LayerMix(len(logits), MixConfig.model_validate({"dropout": 0, **config}))
    assert mix.logits is not None
    with torch.no_grad():
        mix.logits.copy_(torch.tensor(logits))
        mix.gamma.fill_(gamma)
    return mix


def test_a_new_mix_is_the_plain_average() -> None:
    layers = torch.randn(3, 2, 5, 4)
    assert torch.allclose(LayerMix(3, PLAIN)(layers), layers.mean(dim=0), atol=1e-6)


def test_a_mix_is_what_the_formula_says() -> None:
    layers = torch.randn(3, 2, 5, 4)
    mixed = mix_of([0.5, -1.0, 2.0], gamma=1.7)(layers)
    powers = [math.exp(logit) for logit in (0.5, -1.0, 2.0)]
    expected = sum(1.7 * e / sum(powers) * x for e, x in zip(powers, layers, strict=True))
    assert torch.allclose(mixed, torch.as_tensor(expected), atol=1e-5)


@pytest.mark.parametrize("layer_norm", [True, False])
def test_a_word_is_mixed_alike_in_any_company(layer_norm: bool) -> None:
    layers = 10 * torch.randn(3, 7, 5, 8)
    mix = mix_of([0.5, -1.0, 2.0], layer_norm=layer_norm)
    alone = mix(layers[:, 2:3, 1:2].contiguous())
    assert torch.allclose(mix(layers)[2:3, 1:2], alone, atol=1e-6)


def test_normalized_layers_weigh_alike_however_large_their_numbers_are() -> None:
    layer = torch.randn(2, 5, 16)
    mix = mix_of([0.0, 0.0], layer_norm=True)
    mixed = mix(torch.stack([layer, 1000 * layer]))
    assert torch.allclose(mixed.mean(dim=-1), torch.zeros(2, 5), atol=1e-5)
    assert torch.allclose(mixed.var(dim=-1, correction=0), torch.ones(2, 5), atol=1e-3)


def test_one_layer_alone_is_taken_as_it_is_and_still_scaled() -> None:
    layers = torch.randn(3, 2, 5, 4)
    mix = LayerMix(3, MixConfig(layer=-1, dropout=0))
    assert torch.equal(mix(layers), layers[2])
    assert [name for name, _ in mix.named_parameters()] == ["gamma"]
    assert mix.weights() == [0.0, 0.0, 1.0]
    assert mix.penalty() == 0


def test_the_penalty_draws_the_weights_together() -> None:
    mix = mix_of([1.0, -2.0], penalty=0.01)
    assert math.isclose(float(mix.penalty().detach()), 0.01 * 5, rel_tol=1e-6)
    mix.penalty().backward()  # type: ignore[no-untyped-call]
    assert mix.logits is not None
    assert mix.logits.grad is not None
    assert torch.allclose(mix.logits.grad, torch.tensor([0.02, -0.04]))


def test_another_number_of_layers_is_refused() -> None:
    with pytest.raises(ModelError, match="3 layers but the encoder gives 4"):
        LayerMix(3, PLAIN)(torch.randn(4, 1, 1, 2))
    with pytest.raises(ModelError, match=r"mix\.layer = 3"):
        LayerMix(3, MixConfig(layer=3))


def test_numbers_are_left_out_in_training_only() -> None:
    layers = torch.ones(2, 4, 50, 8)
    mix = LayerMix(2, MixConfig(dropout=0.5))
    assert 0.3 < float((mix(layers) == 0).float().mean()) < 0.7
    assert not (mix.eval()(layers) == 0).any()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_left_out_and_the_mean_stays(share: float) -> None:
    torch.manual_seed(1)
    dropped = ByteDropout(share)(torch.ones(400, 1003))
    assert abs(float((dropped == 0).float().mean()) - share) < 0.004
    assert abs(float(dropped.mean()) - 1) < 0.02


def test_a_seed_repeats_it() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(ByteDropout(0.3)(torch.ones(3, 5, 7)))
    assert torch.equal(*found)


def test_the_gradient_goes_where_the_numbers_went() -> None:
    vectors = torch.ones(100, requires_grad=True)
    dropped = ByteDropout(0.5)(vectors)
    dropped.sum().backward()
    assert vectors.grad is not None
    assert torch.equal(vectors.grad, dropped.detach())
