"""The steps of one LSTM layer over packed sentences, by torch or compiled, without gradients.

in   inputs   (S, N + SLACK, D)   words of all sentences, packed step after step
     batch_sizes                  how many sentences have a word at each step, as in
                                  `nn.utils.rnn.PackedSequence`: falling, sum N; but the first
                                  may be a single row that stands for all
out  outputs  (S, N + SLACK, P)   what lies after row N is of no use
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from polyseme.encoders.cell import EagerCell, Step, arrays_of, bound_of
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel, StepShape
from polyseme.encoders.recurrence import LayerWeights

SLACK = 16
"""Rows after the last that the kernel may read, though not use."""
_DEEP = 32  # numbers that a tile takes in
_AT_ONCE = 1024  # rows that one multiplication reads, by torch


class Steps(Protocol):
    """Two ways to do one thing."""

    def run(self, inputs: Tensor, batch_sizes: list[int]) -> Tensor:
        """All steps, from a state of zeros."""


def choose_steps(weights: LayerWeights, dtype: torch.dtype) -> Steps:
    """Compiled, where that is built and fits."""
    kernel = loader.load()
    if kernel is not None and weights.bias.device.type == "cpu":
        functions = _functions(kernel, weights, dtype)
        if functions is not None:
            return CompiledSteps(functions, weights, dtype)
    return EagerSteps(weights, dtype)


def _begin(
    weights: LayerWeights, dtype: torch.dtype, batch_sizes: list[int]
) -> tuple[Tensor, Tensor]:
    """Room for what all steps give, and what the first finds: nothing."""
    stacks, proj_size, _ = weights.weight_hh.shape
    outputs = weights.bias.new_empty(stacks, sum(batch_sizes) + SLACK, proj_size, dtype=dtype)
    outputs[:, sum(batch_sizes) :] = 0
    return outputs, outputs.new_zeros(stacks, max(batch_sizes) + SLACK, proj_size)


def _starts_all(step: int, batch_sizes: list[int]) -> bool:
    """Whether the single row of this step stands for all rows of the next."""
    return step == 0 and len(batch_sizes) > 1 and batch_sizes[1] > batch_sizes[0]


class EagerSteps:
    """By torch, on any device."""

    def __init__(self, weights: LayerWeights, dtype: torch.dtype) -> None:
        self._weights = weights
        self._dtype = dtype
        self._weight_ih, self._weight_hh = weights.weight_ih.to(dtype), weights.weight_hh.to(dtype)
        weight_hr = weights.weight_hr
        self._weight_hr = None if weight_hr is None else weight_hr.to(dtype)
        self._cell = EagerCell(weights.bias, weights.clips.cell)

    def run(self, inputs: Tensor, batch_sizes: list[int]) -> Tensor:
        """As `Steps` has it."""
        outputs, hidden = _begin(self._weights, self._dtype, batch_sizes)
        stacks, hidden_size = len(outputs), self._weights.bias.shape[-1] // 4
        wide = torch.promote_types(self._dtype, torch.float32)
        cells = outputs.new_zeros(2, stacks, max(batch_sizes), hidden_size, dtype=wide)
        gates = outputs.new_empty(stacks, max(batch_sizes), 4 * hidden_size, dtype=wide)
        cell_outputs = outputs.new_empty(stacks, max(batch_sizes), hidden_size)
        begin = until = start = 0
        for step, number in enumerate(batch_sizes):
            end = begin + number
            if end > until:
                start, until = begin, _far(batch_sizes[step:], begin)
                gate_inputs = torch.bmm(inputs[:, start:until], self._weight_ih)
            output = outputs[:, begin:end]
            cell_output = output if self._weight_hr is None else cell_outputs[:, :number]
            before, after = cells[step % 2], cells[1 - step % 2]
            kept = Step(gates[:, :number], before[:, :number], after[:, :number])
            self._cell.forward(
                gate_inputs[:, begin - start : end - start],
                hidden[:, :number],
                self._weight_hh,
                kept,
                cell_output,
            )
            _project(cell_output, self._weight_hr, output, self._weights.clips.output)
            if _starts_all(step, batch_sizes):
                after[:] = after[:, :1]
                hidden[:] = output
            else:
                hidden = output
            begin = end
        return outputs


def _far(batch_sizes: list[int], begin: int) -> int:
    """Where the steps end that are multiplied together from here."""
    end = begin
    for number in batch_sizes:
        if end > begin and end + number > begin + _AT_ONCE:
            break
        end += number
    return end


def _project(
    cell_output: Tensor, weight_hr: Tensor | None, output: Tensor, clip: float | None
) -> None:
    if weight_hr is not None:
        torch.bmm(cell_output, weight_hr, out=output)
    if clip is not None:
        output.clamp_(-clip, clip)


class _Functions(NamedTuple):
    panel_cells: int
    step: Callable[..., None]
    pack: Callable[..., None]


def _functions(kernel: Kernel, weights: LayerWeights, dtype: torch.dtype) -> _Functions | None:
    """Those for these sizes, if the processor has what they need."""
    _, input_size, gates = weights.weight_ih.shape
    proj_size, name = weights.weight_hh.shape[1], str(dtype).removeprefix("torch.")
    if not kernel.can_step(name):
        return None
    cells = kernel.panel_cells()
    if gates % (4 * cells):
        return None
    if dtype == torch.bfloat16 and (input_size % _DEEP or proj_size % _DEEP):
        return None
    return _Functions(cells, getattr(kernel, f"step_{name}"), getattr(kernel, f"pack_{name}"))


class CompiledSteps:
    """By `steps.c` and `tiles.c`."""

    def __init__(self, functions: _Functions, weights: LayerWeights, dtype: torch.dtype) -> None:
        self._functions = functions
        self._weights = weights
        self._dtype = dtype
        self._bias = weights.bias.detach().float().contiguous()
        weight_hr = weights.weight_hr
        self._weight_hr = None if weight_hr is None else weight_hr.to(dtype)

    def run(self, inputs: Tensor, batch_sizes: list[int]) -> Tensor:
        """As `Steps` has it."""
        weights, clips = self._weights, self._weights.clips
        packed = self._packed([weights.weight_ih, weights.weight_hh])
        outputs, hidden = _begin(weights, self._dtype, batch_sizes)
        stacks, hidden_size = len(outputs), self._bias.shape[-1] // 4
        panel = self._functions.panel_cells
        cells = self._bias.new_zeros(stacks, hidden_size // panel, max(batch_sizes), panel)
        cell_outputs = outputs.new_empty(stacks, max(batch_sizes), hidden_size)
        shape = StepShape(
            stacks=stacks,
            max_rows=max(batch_sizes),
            hidden_size=hidden_size,
            input_size=inputs.shape[-1],
            proj_size=outputs.shape[-1],
            threads=torch.get_num_threads(),
            clip=bound_of(clips.cell),
        )
        begin = 0
        for step, number in enumerate(batch_sizes):
            output = outputs[:, begin : begin + number]
            cell_output = output if self._weight_hr is None else cell_outputs[:, :number]
            shape.rows = number
            arrays = arrays_of(inputs[:, begin:], hidden, packed, self._bias, cells, cell_output)
            self._functions.step(ctypes.byref(shape), arrays)
            _project(cell_output, self._weight_hr, output, clips.output)
            if _starts_all(step, batch_sizes):
                cells[:] = cells[:, :, :1]
                hidden[:] = output
            else:
                hidden = output
            begin += number
        return outputs

    def _packed(self, parts: list[Tensor]) -> Tensor:
        """These weights (S, rows, 4H) one below the other, in the order the kernel reads."""
        stacks, _, gates = parts[0].shape
        depth, begin = sum(part.shape[1] for part in parts), 0
        packed = parts[0].new_empty(stacks, depth * gates, dtype=self._dtype)
        for part in parts:
            for source, into in zip(part.detach().float().contiguous(), packed, strict=True):
                sizes = (ctypes.c_int64 * 4)(len(source), begin, depth, gates // 4)
                self._functions.pack(_address(source), _address(into), sizes)
            begin += part.shape[1]
        return packed


def _address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
