"""An LSTM cell and its recurrence over the steps of several stacks, forward and backward.

One step:
    in   gate_inputs, hidden, weight_hh  (S, B, 4H), (S, B, P), (S, P, 4H): what gates are made of,
                                         with a bias (S, 4H) that is the same at every step
    out  Step                            gates and cells, for the backward pass
         cell_output                     (S, B, H)  output gate times tanh(cell), not projected yet
All steps, projected and clipped:
    in   gate_inputs  (S, T, B, 4H), and hidden (S, B, P) and cell (S, B, H) before the first step
    out  outputs      (S, T, B, P), and the state after the last step

Gates are ordered input, forget, output, candidate (i, f, o, g). A step is computed by torch
anywhere, or compiled: that goes through memory once where torch goes a dozen times. Cells are
float32 whatever the dtype of `gate_inputs` (bfloat16 under autocast), in which multiplications run.

`nn.LSTM` can neither clip nor be differentiated without storing every intermediate of every step,
so the gradient is written out here. That makes one large multiplication for each weight instead of
one for each step, and lets all steps work in memory that is allocated once.
"""

import ctypes
from typing import Any, NamedTuple, Protocol

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


class State(NamedTuple):
    """What a stack carries from word to word: a value that is passed in and handed back."""

    hidden: Tensor  # (S, B, P)
    cell: Tensor  # (S, B, H)


class Clips(NamedTuple):
    """Bounds on the cell and on the projected output; None leaves them free."""

    cell: float | None = None
    output: float | None = None


class LayerWeights(NamedTuple):
    """The weights of one layer, named as in `nn.LSTM` but transposed, and its clips."""

    weight_ih: Tensor  # (S, D, 4H)
    weight_hh: Tensor  # (S, P, 4H)
    bias: Tensor  # (S, 4H)
    weight_hr: Tensor | None  # (S, H, P)
    clips: Clips


def recur(
    gate_inputs: Tensor,
    bias: Tensor,
    weight_hh: Tensor,
    *,
    weight_hr: Tensor | None,
    state: State,
    clips: Clips,
) -> tuple[Tensor, State]:
    """Run all steps. `weight_hh` is (S, P, 4H); `weight_hr` (S, H, P), or None where P is H."""
    inputs = (gate_inputs, bias, weight_hh, weight_hr, *state)
    if torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in inputs):
        outputs, hidden, cell = _Recurrence.apply(clips, *inputs)  # type: ignore[no-untyped-call]
        return outputs, State(hidden, cell)
    with torch.no_grad():
        weights = _Weights.of(weight_hh, weight_hr, gate_inputs.dtype)
        gate_inputs = gate_inputs.contiguous()
        cell = choose_cell(gate_inputs, bias, clips.cell)
        trace = _unroll(cell, gate_inputs, weights, state, clips, keep=1)
    return trace.outputs[:, 1:], trace.last_state()


class _Weights(NamedTuple):
    hh: Tensor  # (S, P, 4H)
    hr: Tensor | None  # (S, H, P)

    @classmethod
    def of(cls, hh: Tensor, hr: Tensor | None, dtype: torch.dtype) -> "_Weights":
        return cls(hh.to(dtype), None if hr is None else hr.to(dtype))

    def transposed(self) -> "_Weights":
        """In memory: a multiplication by a transposed view is many times slower in float32."""
        hh = self.hh.transpose(1, 2).contiguous()
        return _Weights(hh, None if self.hr is None else self.hr.transpose(1, 2).contiguous())


class _Trace(NamedTuple):
    """What the steps leave behind. Of all but `outputs`, only the last K steps are kept."""

    gates: Tensor  # (S, K, B, 4H)
    cells: Tensor  # (K + 1, S, B, H)
    cell_outputs: Tensor  # (S, K, B, H); nothing in it without a projection
    # One step longer than T: what step t reads is at t, what it gives at t + 1.
    outputs: Tensor  # (S, T + 1, B, P)

    def step(self, number: int) -> Step:
        gates, cells = self.gates, self.cells
        before, after = cells[number % len(cells)], cells[(number + 1) % len(cells)]
        return Step(gates[:, number % gates.shape[1]], before, after)

    def last_state(self) -> State:
        steps = self.outputs.shape[1] - 1
        cell = self.cells[steps % len(self.cells)].clone()
        return State(self.outputs[:, steps].float(), cell)


def _unroll(
    cell: Cell, gate_inputs: Tensor, weights: _Weights, state: State, clips: Clips, *, keep: int
) -> _Trace:
    """All steps forward; the last `keep` of them can be gone back over."""
    stacks, steps, rows, gates = gate_inputs.shape
    weight_hr = weights.hr
    trace = _Trace(
        gates=gate_inputs.new_empty(stacks, keep, rows, gates, dtype=cell.gates_dtype),
        cells=gate_inputs.new_empty(keep + 1, stacks, rows, gates // 4, dtype=torch.float32),
        cell_outputs=gate_inputs.new_empty(
            stacks, 0 if weight_hr is None else keep, rows, gates // 4
        ),
        outputs=gate_inputs.new_empty(stacks, steps + 1, rows, state.hidden.shape[-1]),
    )
    trace.cells[0], trace.outputs[:, 0] = state.cell, state.hidden
    for step in range(steps):
        output = trace.outputs[:, step + 1]
        cell_output = output if weight_hr is None else trace.cell_outputs[:, step % keep]
        cell.forward(
            gate_inputs[:, step],
            trace.outputs[:, step],
            weights.hh,
            trace.step(step),
            cell_output,
        )
        if weight_hr is not None:
            torch.bmm(cell_output, weight_hr, out=output)
        if clips.output is not None:
            output.clamp_(-clips.output, clips.output)
    return trace


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, clips: Clips, *inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        gate_inputs, bias, weight_hh, weight_hr, hidden, cell = inputs
        weights = _Weights.of(weight_hh, weight_hr, gate_inputs.dtype)
        gate_inputs = gate_inputs.contiguous()
        ctx.clips, ctx.cell = clips, choose_cell(gate_inputs, bias, clips.cell)
        state, steps = State(hidden, cell), gate_inputs.shape[1]
        trace = _unroll(ctx.cell, gate_inputs, weights, state, clips, keep=steps)
        ctx.save_for_backward(*weights, *trace)
        return trace.outputs[:, 1:], *trace.last_state()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weight_hh, weight_hr, *saved = ctx.saved_tensors
        trace = _Trace(*saved)
        weights = _Weights(weight_hh, weight_hr)
        grad_gates, grad_outputs, state = _rewind(ctx.cell, trace, weights, gradients, ctx.clips)
        grad_hh = _weight_gradient(trace.outputs[:, :-1], grad_gates)
        grad_hr = None
        if weight_hr is not None:
            grad_hr = _weight_gradient(trace.cell_outputs, grad_outputs)
        ones = grad_gates.new_ones(1, 1, 1, 1).expand(*grad_gates.shape[:3], 1)
        # A sum, as a multiplication: faster.
        grad_bias = _weight_gradient(ones, grad_gates).squeeze(1)
        return None, grad_gates, grad_bias, grad_hh, grad_hr, state.hidden, state.cell


def _rewind(
    cell: Cell, trace: _Trace, weights: _Weights, gradients: tuple[Tensor, ...], clips: Clips
) -> tuple[Tensor, Tensor, State]:
    """All steps backward: gradients of `gate_inputs`, of unclipped outputs, of the first state."""
    from_outputs, from_hidden, from_cell = gradients
    outputs = trace.outputs
    stacks, steps, rows, _ = from_outputs.shape
    grad_gates = outputs.new_empty(stacks, steps, rows, trace.gates.shape[-1])
    grad_outputs = outputs.new_empty(from_outputs.shape)
    back = weights.transposed()
    hidden = from_hidden.to(outputs.dtype)
    grad_cell = from_cell.clone(memory_format=torch.contiguous_format)
    for step in reversed(range(steps)):
        grad_output = torch.add(from_outputs[:, step], hidden, out=grad_outputs[:, step])
        stop_at_clip(grad_output, outputs[:, step + 1], clips.output)
        grad_cell_output = grad_output if back.hr is None else torch.bmm(grad_output, back.hr)
        cell.backward(trace.step(step), grad_cell_output, grad_cell, grad_gates[:, step])
        hidden = torch.bmm(grad_gates[:, step], back.hh)
    return grad_gates, grad_outputs, State(hidden.float(), grad_cell)


def _weight_gradient(inputs: Tensor, gradient: Tensor) -> Tensor:
    """(S, T, B, I) and (S, T, B, O) -> (S, I, O), over all steps in one multiplication."""
    return torch.bmm(inputs.flatten(1, 2).transpose(1, 2), gradient.flatten(1, 2)).float()
