"""The recurrence of a projected, clipped LSTM, forward and backward, for several stacks at once.

    in   gate_inputs  (S, T, B, 4H)  what the inputs add to the gates, for all steps
         bias     (S, 4H)        what is added at every step
         state    hidden (S, B, P) and cell (S, B, H) before the first step
    out  outputs  (S, T, B, P)   and the state after the last step

`nn.LSTM` can neither clip nor be differentiated without storing every intermediate of every step,
so the gradient is written out here. That makes one large multiplication for each weight instead of
one for each step, and lets all steps work in memory that is allocated once. Multiplications run in
the dtype of `gate_inputs` (bfloat16 under autocast); cells are always float32.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from polyseme.encoders.cell import Cell, Step, choose_cell, stop_at_clip


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
