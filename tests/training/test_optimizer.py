"""Parameters that are trained each in its own way, and the learning rate over a run."""

import pytest
import torch
from torch import nn

from polyseme.errors import TrainingError
from polyseme.training.optimizer import (
    ParamGroup,
    build_optimizer,
    learning_rate_at,
    set_learning_rate,
)
from training.toy import settings


def moved(
    param_groups: dict[str, ParamGroup], *, gradient: float, weight_decay: float = 0.0
) -> dict[str, float]:
    """How far one step at a learning rate of 0.5 takes each parameter of ones."""
    module = nn.Linear(3, 2)
    for parameter in module.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.full_like(parameter, gradient)
    optimizer = build_optimizer(module, settings(weight_decay=weight_decay), param_groups)
    set_learning_rate(optimizer, 0.5)
    optimizer.step()
    return {name: 1 - float(p.detach().mean()) for name, p in module.named_parameters()}


def test_a_parameter_moves_by_its_own_share_of_the_learning_rate() -> None:
    # Adam's first step is the learning rate, whatever the gradient.
    found = moved({"weight": ParamGroup(lr_scale=0.1)}, gradient=2.0)
    assert found == pytest.approx({"weight": 0.05, "bias": 0.5}, rel=1e-5)


def test_weight_decay_is_at_the_parameter_s_own_rate_too() -> None:
    found = moved({"weight": ParamGroup(lr_scale=0.1)}, gradient=0.0, weight_decay=0.2)
    assert found == pytest.approx({"weight": 0.5 * 0.1 * 0.2, "bias": 0.0}, rel=1e-5)


def test_the_biases_of_stacked_lstms_do_not_decay() -> None:
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(2, 3, 4))
    module.bias = nn.Parameter(torch.ones(2, 4))
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = build_optimizer(module, settings(weight_decay=0.2))
    set_learning_rate(optimizer, 0.5)
    optimizer.step()
    assert torch.allclose(module.weight, torch.tensor(0.9))
    assert torch.equal(module.bias, torch.ones(2, 4))


def test_what_is_frozen_is_not_in_the_optimizer() -> None:
    module = nn.Linear(3, 2)
    module.weight.requires_grad_(False)
    optimizer = build_optimizer(module, settings())
    assert [p for group in optimizer.param_groups for p in group["params"]] == [module.bias]
    module.bias.requires_grad_(False)
    with pytest.raises(TrainingError, match="every parameter is frozen"):
        build_optimizer(module, settings())


# The learning rate over a run


def rates(**others: object) -> list[float]:
    config = settings(100, learning_rate=1.0, **others)
    return [learning_rate_at(step, config) for step in range(100)]


@pytest.mark.parametrize("decay", ["cosine", "linear", "none"])
def test_the_rate_rises_evenly_to_its_highest(decay: str) -> None:
    rising = rates(warmup_ratio=0.1, decay=decay)[:10]
    assert rising == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_the_cosine_is_half_way_down_half_way_through() -> None:
    assert rates(warmup_ratio=0.0, decay="cosine")[50] == pytest.approx(0.5)
    assert 0 < rates(warmup_ratio=0.0, decay="cosine")[-1] < 0.001


def test_the_line_is_straight() -> None:
    assert rates(warmup_ratio=0.0, decay="linear")[25] == pytest.approx(0.75)
