"""Stacks of the recurrence: directions, what is added to what, and the state that is carried."""

import math

import pytest
import torch
from torch import Tensor

from polyseme.encoders.directions import Direction
from polyseme.encoders.lstm import Lstm, LstmConfig

PROJECTED = LstmConfig(num_layers=3, proj_size=6, hidden_size=10, cell_clip=0.3, output_clip=0.2)
PLAIN = LstmConfig(num_layers=2, proj_size=6)
CONFIGS = pytest.mark.parametrize("config", [PROJECTED, PLAIN], ids=["projected", "plain"])


def lstm(config: LstmConfig, direction: Direction) -> Lstm:
    torch.manual_seed(0)
    return Lstm(config, direction).eval()


def one_stack(module: Lstm, stack: int, words: list[list[float]]) -> list[list[list[float]]]:
    """Every layer's outputs for one sentence, one number at a time; no residual, no direction."""
    layers = []
    for number, layer in enumerate(module.layers):
        weights = {name: w[stack].double() for name, w in layer.state_dict().items()}
        hidden_size = weights["bias"].shape[0] // 4
        proj_size = weights["weight_hh"].shape[0]
        hidden, cell = [0.0] * proj_size, [0.0] * hidden_size
        outputs = []
        for word in words:
            gates = (
                weights["bias"]
                + torch.tensor(word, dtype=torch.double) @ weights["weight_ih"]
                + torch.tensor(hidden, dtype=torch.double) @ weights["weight_hh"]
            ).tolist()
            for n in range(hidden_size):
                input_gate, forget_gate = _sigmoid(gates[n]), _sigmoid(gates[hidden_size + n])
                cell[n] = forget_gate * cell[n] + input_gate * math.tanh(gates[3 * hidden_size + n])
                cell[n] = _clip(cell[n], module.config.cell_clip)
            out = [
                _sigmoid(gates[2 * hidden_size + n]) * math.tanh(cell[n])
                for n in range(hidden_size)
            ]
            if "weight_hr" in weights:
                out = (torch.tensor(out, dtype=torch.double) @ weights["weight_hr"]).tolist()
            hidden = [_clip(value, module.config.output_clip) for value in out]
            outputs.append(hidden)
        if number:
            outputs = (torch.tensor(outputs) + torch.tensor(words)).tolist()
        layers.append(outputs)
        words = outputs
    return layers


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _clip(value: float, bound: float | None) -> float:
    return value if bound is None else max(-bound, min(bound, value))


@CONFIGS
def test_separate_each_half_is_a_plain_loop_over_its_own_reading_direction(
    config: LstmConfig,
) -> None:
    module, vectors = lstm(config, "separate"), torch.randn(2, 5, 6)
    with torch.no_grad():
        found = module(vectors, torch.tensor([5, 3]))
    for row, length in ((0, 5), (1, 3)):
        words = vectors[row, :length].tolist()
        forward, backward = one_stack(module, 0, words), one_stack(module, 1, words[::-1])
        for number, layer in enumerate(found):
            assert _near(layer[row, :length, :6], forward[number])
            assert _near(layer[row, :length, 6:], backward[number][::-1])


@CONFIGS
def test_forward_is_the_first_of_the_two_stacks(config: LstmConfig) -> None:
    module, vectors = lstm(config, "forward"), torch.randn(1, 4, 6)
    with torch.no_grad():
        found = module(vectors, torch.tensor([4]))
    expected = one_stack(module, 0, vectors[0].tolist())
    assert all(_near(layer[0], expected[number]) for number, layer in enumerate(found))


def _near(found: Tensor, expected: list[list[float]]) -> bool:
    return torch.allclose(found, torch.tensor(expected), atol=1e-5)


@CONFIGS
def test_two_halves_with_the_state_carried_equal_the_whole(config: LstmConfig) -> None:
    module, vectors = lstm(config, "forward"), torch.randn(3, 8, 6)
    lengths = torch.tensor([8, 8, 8])
    with torch.no_grad():
        whole, end = module.run(vectors, lengths, None)
        first, states = module.run(vectors[:, :3], torch.tensor([3, 3, 3]), None)
        second, after = module.run(vectors[:, 3:], torch.tensor([5, 5, 5]), states)
    for number, layer in enumerate(whole):
        halves = torch.cat([first[number], second[number]], dim=1)
        assert torch.allclose(halves, layer, atol=1e-6)
        assert torch.allclose(after[number].cell, end[number].cell, atol=1e-6)
        assert torch.allclose(after[number].hidden, end[number].hidden, atol=1e-6)


def test_nothing_is_carried_that_is_not_passed() -> None:
    module, vectors = lstm(PROJECTED, "separate"), torch.randn(1, 4, 6)
    lengths = torch.tensor([4])
    with torch.no_grad():
        first = module(vectors, lengths)
        _, states = module.run(vectors, lengths, None)
        kept = [state.cell.clone() for state in states]
        module.run(vectors, lengths, states)
        again = module(vectors, lengths)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert all(torch.equal(state.cell, old) for state, old in zip(states, kept, strict=True))


def test_gates_begin_by_remembering() -> None:
    for name, weight in lstm(PROJECTED, "separate").named_parameters():
        if not name.endswith("bias"):
            continue
        input_gate, forget_gate, output_gate, candidate = weight.chunk(4, dim=-1)
        assert bool((forget_gate == 1).all())
        assert not torch.cat([input_gate, output_gate, candidate]).any()


@CONFIGS
def test_joint_the_second_layer_reads_both_halves_of_the_first(config: LstmConfig) -> None:
    module, vectors = lstm(config, "joint"), torch.randn(1, 4, 6)
    with torch.no_grad():
        found = module(vectors, torch.tensor([4]))
        second = module.layers[1]
        read = torch.stack([found[0], found[0].flip(1)]).transpose(1, 2)
        outcome, _ = second(read, None)
    expected = torch.cat([outcome[0, :, 0], outcome[1, :, 0].flip(0)], dim=-1) + found[0][0]
    assert torch.allclose(found[1][0], expected, atol=1e-6)
