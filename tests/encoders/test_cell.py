"""One step of the compiled cell, against torch's and against plain functions in float64."""

import pytest
import torch

from polyseme.encoders.cell import CompiledCell, EagerCell, Step
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
