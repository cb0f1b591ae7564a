"""One step of the compiled cell, against torch's and against plain functions in float64.

The recurrence against plain autograd in float64, by torch and compiled.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from polyseme.encoders.cell import Clips, CompiledCell, EagerCell, State, Step, recur
from polyseme.encoders.kernels.loader import Kernel


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("clip", [None, 0.4], ids=["free", "clipped"])
def test_one_step_back_is_the_same_by_torch_and_compiled(
    library: Kernel, dtype: torch.dtype, clip: float | None
) -> None:
    random = torch.Generator().manual_seed(0)
    gate_inputs = torch.randn(2, 1, 5, 4 * 37, generator=random).to(dtype)
    hidden = torch.zeros(2, 5, 11, dtype=dtype)
    weight = torch.zeros(2, 11, 4 * 37, dtype=dtype)
    bias = torch.randn(2, 4 * 37, generator=random)
    before, of_cell, grad_of_output = torch.randn(3, 2, 5, 37, generator=random)
    found = []
    for cell in (EagerCell(bias, clip), CompiledCell(library, gate_inputs, bias, clip)):
        kept = torch.empty(2, 5, 4 * 37, dtype=cell.gates_dtype)
        step = Step(kept, before, torch.empty_like(before))
        cell_output, grad_gates = grad_of_output.to(dtype), torch.empty(2, 5, 4 * 37, dtype=dtype)
        cell.forward(gate_inputs[:, 0], hidden, weight, step, torch.empty_like(cell_output))
        grad_cell = of_cell.clone()
        cell.backward(step, cell_output, grad_cell, grad_gates)
        found.append((step.cell_after, grad_cell, grad_gates))
    (after, grad_cell, grad_gates), (also_after, also_grad_cell, also_grad_gates) = found
    torch.testing.assert_close(also_after, after, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(also_grad_cell, grad_cell, rtol=1e-5, atol=1e-4)
    # In bfloat16 a gradient may be rounded up here and down there: 1 part in 128.
    torch.testing.assert_close(also_grad_gates, grad_gates, rtol=1 / 128, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "scale", "tolerance"),
    [(torch.float32, 1, 2e-6), (torch.bfloat16, 32767, 2e-5)],
    ids=["float32", "bfloat16"],
)
def test_compiled_gates_are_sigmoid_and_tanh_from_end_to_end(
    library: Kernel, dtype: torch.dtype, scale: float, tolerance: float
) -> None:
    points = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([-3e38, -90, 90, 3e38])])
    gate_inputs = points.repeat(4)[None, None, None].to(dtype)
    size = points.numel()
    cell = CompiledCell(library, gate_inputs, torch.zeros(1, 4 * size), None)
    step = Step(
        torch.empty(1, 1, 4 * size, dtype=cell.gates_dtype),
        torch.zeros(1, 1, size),
        torch.empty(1, 1, size),
    )
    nothing = torch.zeros(1, 1, 1, dtype=dtype), torch.zeros(1, 1, 4 * size, dtype=dtype)
    cell.forward(gate_inputs[:, 0], *nothing, step, torch.empty(1, 1, size, dtype=dtype))
    input_gate, forget_gate, output_gate, candidate = gate_inputs.double().flatten().chunk(4)
    expected = torch.cat(
        [input_gate.sigmoid(), forget_gate.sigmoid(), output_gate.sigmoid(), candidate.tanh()]
    )
    assert (step.gates.double().flatten() / scale - expected).abs().max() < tolerance


def test_two_threads_give_the_bits_of_one(library: Kernel) -> None:
    """More than 32,768 cells, or the work would not be shared out."""
    random = torch.Generator().manual_seed(0)
    gate_inputs = torch.randn(2, 1, 67, 4 * 300, generator=random)
    before = torch.randn(2, 67, 300, generator=random)
    nothing = torch.zeros(2, 67, 1), torch.zeros(2, 1, 4 * 300)
    found = []
    for number in (1, 2):
        torch.set_num_threads(number)
        cell = CompiledCell(library, gate_inputs, torch.ones(2, 4 * 300), 0.4)
        step = Step(torch.empty_like(gate_inputs[:, 0]), before, torch.empty_like(before))
        cell_output = torch.empty_like(before)
        cell.forward(gate_inputs[:, 0], *nothing, step, cell_output)
        found.append((step.gates, step.cell_after, cell_output))
    torch.set_num_threads(1)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


FREE, TIGHT = Clips(), Clips(cell=0.4, output=0.15)


class Inputs(NamedTuple):
    gate_inputs: Tensor
    bias: Tensor
    weight_hh: Tensor
    weight_hr: Tensor | None
    hidden: Tensor
    cell: Tensor


def draw(
    stacks: int = 2,
    steps: int = 7,
    rows: int = 3,
    hidden_size: int = 37,
    proj_size: int | None = 11,
) -> Inputs:
    """Sizes that fill no vector register, so that the ends of the loops are tried too."""
    random = torch.Generator().manual_seed(stacks * steps)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    out = proj_size or hidden_size
    return Inputs(
        normal(stacks, steps, rows, 4 * hidden_size) * 1.5,
        normal(stacks, 4 * hidden_size) * 0.5,
        normal(stacks, out, 4 * hidden_size) / out**0.5,
        None if proj_size is None else normal(stacks, hidden_size, proj_size) / hidden_size**0.5,
        normal(stacks, rows, out) * 0.1,
        normal(stacks, rows, hidden_size) * 0.3,
    )


def plain(inputs: Inputs, clips: Clips) -> tuple[Tensor, Tensor, Tensor]:
    """The equations as published, one step after the other, for autograd to go back over."""
    gate_inputs, bias, weight_hh, weight_hr, hidden, cell = inputs
    outputs = []
    for step in range(gate_inputs.shape[1]):
        input_gate, forget_gate, output_gate, candidate = (
            gate_inputs[:, step] + bias[:, None] + hidden @ weight_hh
        ).chunk(4, dim=-1)
        cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
        if clips.cell is not None:
            cell = cell.clamp(-clips.cell, clips.cell)
        hidden = output_gate.sigmoid() * cell.tanh()
        if weight_hr is not None:
            hidden = hidden @ weight_hr
        if clips.output is not None:
            hidden = hidden.clamp(-clips.output, clips.output)
        outputs.append(hidden)
    return torch.stack(outputs, dim=1), hidden, cell


def ours(inputs: Inputs, clips: Clips) -> tuple[Tensor, Tensor, Tensor]:
    gate_inputs, bias, weight_hh, weight_hr, *state = inputs
    outputs, after = recur(
        gate_inputs, bias, weight_hh, weight_hr=weight_hr, state=State(*state), clips=clips
    )
    return outputs, *after


Way = Callable[[Inputs, Clips], tuple[Tensor, Tensor, Tensor]]


def results(run: Way, inputs: Inputs, clips: Clips, dtype: torch.dtype) -> dict[str, Tensor]:
    """Outputs, last state, and the gradients of everything under weights drawn once."""
    # Gate inputs are always rounded to what bfloat16 can hold, so that all dtypes start alike.
    gate_inputs = inputs.gate_inputs.bfloat16().to(dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    rest = [None if each is None else each.to(wide) for each in inputs[1:]]
    leaves = Inputs(gate_inputs, *rest)  # type: ignore[arg-type]
    for each in leaves:
        if each is not None:
            each.requires_grad_()
    found = run(leaves, clips)
    random = torch.Generator().manual_seed(3)
    loss = sum((each.double() * torch.randn(each.shape, generator=random)).sum() for each in found)
    assert isinstance(loss, Tensor)
    loss.backward()  # type: ignore[no-untyped-call]
    values = dict(zip(("outputs", "last hidden", "last cell"), found, strict=True))
    for name, each in leaves._asdict().items():
        if each is not None:
            values[f"gradient of {name}"] = each.grad
    return {name: each.detach().double() for name, each in values.items()}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("clips", [FREE, TIGHT], ids=["free", "clipped"])
@pytest.mark.parametrize("proj_size", [11, None], ids=["projected", "unprojected"])
@pytest.mark.parametrize(("stacks", "steps"), [(1, 7), (2, 7), (2, 1)])
def test_outputs_and_gradients_are_those_of_plain_autograd(
    stacks: int, steps: int, proj_size: int | None, clips: Clips
) -> None:
    inputs = draw(stacks=stacks, steps=steps, proj_size=proj_size)
    expected = results(plain, inputs, clips, torch.float64)
    found = results(ours, inputs, clips, torch.float32)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("proj_size", [11, None], ids=["projected", "unprojected"])
def test_bfloat16_stays_within_one_percent(proj_size: int | None) -> None:
    """Of each result's size. A bfloat16 holds 8 bits: a single rounding is off by up to 0.4 %."""
    inputs = draw(steps=12, rows=8, proj_size=proj_size)
    expected = results(plain, inputs, FREE, torch.float64)
    found = results(ours, inputs, FREE, torch.bfloat16)
    for name, value in expected.items():
        assert (found[name] - value).norm() < 0.01 * value.norm(), name


@pytest.mark.usefixtures("way")
def test_bfloat16_outputs_keep_to_the_clips() -> None:
    inputs = draw(steps=12)
    expected = results(plain, inputs, TIGHT, torch.float64)
    found = results(ours, inputs, TIGHT, torch.bfloat16)
    assert found["last cell"].abs().max() <= torch.tensor(0.4)
    assert found["outputs"].abs().max() <= torch.tensor(0.15).bfloat16()
    assert (found["outputs"] - expected["outputs"]).abs().max() < 0.01


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_same_inputs_twice_give_the_same_bits(dtype: torch.dtype) -> None:
    first, second = (results(ours, draw(), TIGHT, dtype) for _ in range(2))
    for name, value in first.items():
        assert torch.equal(second[name], value), name


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_row_does_not_depend_on_the_others(dtype: torch.dtype) -> None:
    inputs = draw(rows=4)
    other = inputs._replace(gate_inputs=inputs.gate_inputs.clone(), cell=inputs.cell.clone())
    other.gate_inputs[:, :, 1:] += 1
    other.cell[:, 1:] -= 1
    first, second = (results(ours, each, TIGHT, dtype) for each in (inputs, other))
    assert torch.equal(first["outputs"][:, :, 0], second["outputs"][:, :, 0])
    assert torch.equal(
        first["gradient of gate_inputs"][:, :, 0], second["gradient of gate_inputs"][:, :, 0]
    )
    assert not torch.equal(first["outputs"][:, :, 1], second["outputs"][:, :, 1])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("proj_size", [11, None], ids=["projected", "unprojected"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_without_a_gradient_to_come_the_outcome_is_the_same(
    steps: int, proj_size: int | None
) -> None:
    """Then each step writes over the last one's memory."""
    inputs = draw(steps=steps, proj_size=proj_size)
    learning = results(ours, inputs, TIGHT, torch.bfloat16)
    with torch.no_grad():
        found = ours(inputs._replace(gate_inputs=inputs.gate_inputs.bfloat16()), TIGHT)
    for name, value in zip(("outputs", "last hidden", "last cell"), found, strict=True):
        assert torch.equal(value.double(), learning[name]), name


@pytest.mark.usefixtures("way")
def test_no_rows_give_no_outputs_and_gradients_of_zero() -> None:
    found = results(ours, draw(rows=0), TIGHT, torch.float32)
    assert found["outputs"].shape == (2, 7, 0, 11)
    assert found["gradient of weight_hh"].abs().max() == 0
    assert found["gradient of weight_hr"].abs().max() == 0


@pytest.mark.usefixtures("way")
def test_gate_inputs_that_lie_transposed_in_memory_give_the_same() -> None:
    inputs = draw()
    transposed = inputs.gate_inputs.transpose(1, 2).contiguous().transpose(1, 2)
    straight = ours(inputs, TIGHT)
    for found, expected in zip(
        ours(inputs._replace(gate_inputs=transposed), TIGHT), straight, strict=True
    ):
        assert torch.equal(found, expected)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_not_a_number_is_not_hidden(dtype: torch.dtype) -> None:
    inputs = draw()
    inputs.gate_inputs[0, 3, 1] = torch.nan
    outputs, _, cell = ours(inputs._replace(gate_inputs=inputs.gate_inputs.to(dtype)), TIGHT)
    assert outputs[0, 3:, 1].isnan().all()
    assert cell[0, 1].isnan().all()
    assert outputs[0, :, 0].isfinite().all()
