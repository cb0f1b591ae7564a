"""One step of an LSTM cell, forward and backward: by torch anywhere, or compiled on a processor.

    in   gate_inputs, hidden, weight_hh  (S, B, 4H), (S, B, P), (S, P, 4H): what gates are made of,
                                         with a bias (S, 4H) that is the same at every step
    out  Step                            gates and cells, for the backward pass
         cell_output                     (S, B, H)  output gate times tanh(cell), not projected yet

Gates are ordered input, forget, output, candidate (i, f, o, g). The compiled cell goes through
memory once where torch goes a dozen times. Both work in float32 between reading and writing,
whatever the dtype of `gate_inputs`.
"""

import ctypes
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import GatesShape, StridedArray


class Step(NamedTuple):
    """What a step reads besides its inputs, and what it leaves for the backward pass."""

    gates: Tensor  # (S, B, 4H)
    cell_before: Tensor  # (S, B, H) float32
    cell_after: Tensor  # (S, B, H) float32


class Cell(Protocol):
    """Two ways to do one thing; all results are written into tensors that are passed in."""

    gates_dtype: torch.dtype
    """Of the gates that are kept for the backward pass."""

    def forward(
        self,
        gate_inputs: Tensor,
        hidden: Tensor,
        weight_hh: Tensor,
        step: Step,
        cell_output: Tensor,
    ) -> None:
        """Fill `step` from its cells before, and `cell_output`."""

    def backward(
        self, step: Step, grad_cell_output: Tensor, grad_cell: Tensor, grad_gates: Tensor
    ) -> None:
        """Fill `grad_gates`, the gradient of what the gates were made of, (S, B, 4H).

        `grad_cell` is the gradient of the cells after the step and becomes that of those before.
        """


def choose_cell(gate_inputs: Tensor, bias: Tensor, clip: float | None) -> Cell:
    """The compiled cell where it is built and can be used."""
    if (
        gate_inputs.device.type == "cpu"
        and gate_inputs.dtype in _GATES_DTYPES
        and gate_inputs.is_contiguous()
    ):
        library = loader.load()
        if library is not None:
            return CompiledCell(library, gate_inputs, bias, clip)
    return EagerCell(bias, clip)


class EagerCell:
    """The cell by torch, on any device."""

    gates_dtype = torch.float32

    def __init__(self, bias: Tensor, clip: float | None) -> None:
        self.bias = bias[:, None]
        self.clip = clip

    def forward(
        self,
        gate_inputs: Tensor,
        hidden: Tensor,
        weight_hh: Tensor,
        step: Step,
        cell_output: Tensor,
    ) -> None:
        """As `Cell` has it."""
        gate, cell = step.gates, step.cell_after
        gate.copy_(torch.baddbmm(gate_inputs, hidden, weight_hh))
        gate += self.bias
        size = cell.shape[-1]
        gate[..., : 3 * size].sigmoid_()
        gate[..., 3 * size :].tanh_()
        input_gate, forget_gate, output_gate, candidate = gate.chunk(4, dim=-1)
        torch.mul(forget_gate, step.cell_before, out=cell)
        cell.addcmul_(input_gate, candidate)
        if self.clip is not None:
            cell.clamp_(-self.clip, self.clip)
        cell_output.copy_(output_gate * cell.tanh())

    def backward(
        self, step: Step, grad_cell_output: Tensor, grad_cell: Tensor, grad_gates: Tensor
    ) -> None:
        """As `Cell` has it."""
        grad, cell_tanh, gate = grad_cell_output.float(), step.cell_after.tanh(), step.gates
        input_gate, forget_gate, output_gate, candidate = gate.chunk(4, dim=-1)
        is_wide = grad_gates.dtype == torch.float32
        work = grad_gates if is_wide else torch.empty_like(grad_gates, dtype=torch.float32)
        grad_input, grad_forget, grad_output, grad_candidate = work.chunk(4, dim=-1)
        torch.mul(grad, cell_tanh, out=grad_output)
        grad_cell += torch.ops.aten.tanh_backward(grad * output_gate, cell_tanh)
        stop_at_clip(grad_cell, step.cell_after, self.clip)
        torch.mul(grad_cell, candidate, out=grad_input)
        torch.mul(grad_cell, step.cell_before, out=grad_forget)
        torch.mul(grad_cell, input_gate, out=grad_candidate)
        size = grad_cell.shape[-1]
        sigmoids, tanhs = work[..., : 3 * size], work[..., 3 * size :]
        torch.ops.aten.sigmoid_backward.grad_input(
            sigmoids, gate[..., : 3 * size], grad_input=sigmoids
        )
        torch.ops.aten.tanh_backward.grad_input(tanhs, candidate, grad_input=tanhs)
        if not is_wide:
            grad_gates.copy_(work)
        grad_cell.mul_(forget_gate)


def stop_at_clip(gradient: Tensor, clipped: Tensor, bound: float | None) -> None:
    """Where a value was cut off, a small change before the cut changes nothing after it."""
    if bound is not None:
        torch.ops.aten.hardtanh_backward.grad_input(
            gradient, clipped, -bound, bound, grad_input=gradient
        )


_GATES_DTYPES = {torch.float32: torch.float32, torch.bfloat16: torch.int16}  # int16: fixed point


class CompiledCell:
    """The cell by `gates.c`, for one shape of inputs. All but the stacks must be contiguous."""

    def __init__(
        self, library: ctypes.CDLL, gate_inputs: Tensor, bias: Tensor, clip: float | None
    ) -> None:
        stacks, _, rows, gates = gate_inputs.shape
        name = str(gate_inputs.dtype).removeprefix("torch.")
        self.gates_dtype = _GATES_DTYPES[gate_inputs.dtype]
        self._forward = getattr(library, f"forward_{name}")
        self._backward = getattr(library, f"backward_{name}")
        threads = torch.get_num_threads()
        self._shape = GatesShape(stacks, rows, gates // 4, threads, bound_of(clip))
        self._product = gate_inputs.new_empty(stacks, rows, gates)
        self._bias = bias.detach().float().contiguous()

    def forward(
        self,
        gate_inputs: Tensor,
        hidden: Tensor,
        weight_hh: Tensor,
        step: Step,
        cell_output: Tensor,
    ) -> None:
        """As `Cell` has it."""
        # Added in the kernel: a multiplication that adds would first copy `gate_inputs`.
        torch.bmm(hidden, weight_hh, out=self._product)
        kept = (step.cell_before, step.gates, step.cell_after)
        arrays = arrays_of(gate_inputs, self._product, *kept, cell_output, self._bias)
        self._forward(ctypes.byref(self._shape), arrays)

    def backward(
        self, step: Step, grad_cell_output: Tensor, grad_cell: Tensor, grad_gates: Tensor
    ) -> None:
        """As `Cell` has it."""
        arrays = arrays_of(
            step.gates,
            step.cell_before,
            step.cell_after,
            grad_cell_output,
            grad_cell,
            grad_gates,
        )
        self._backward(ctypes.byref(self._shape), arrays)


def bound_of(clip: float | None) -> float:
    """A clip as the kernels take it: the largest float where values are free."""
    return torch.finfo(torch.float32).max if clip is None else clip


def arrays_of(*tensors: Tensor | None) -> ctypes.Array[StridedArray]:
    """Where tensors begin and how far apart their stacks lie, as the kernels take them."""
    # The caller holds the tensors while the kernel works on them.
    arrays = (
        StridedArray() if each is None else StridedArray(each.data_ptr(), each.stride(0))
        for each in tensors
    )
    return (StridedArray * len(tensors))(*arrays)
