"""The steps of one LSTM layer over sentences laid side by side, by torch or compiled.

in   what each row reads     words (U, D) and which of them (S, N), or vectors (S, N and more, D)
     rows                    how many sentences have a word at each step: falling, sum N; but the
                             first may be a single row that stands for all
out  (S, N and 16 more, P)   what each row gives; what lies after row N is of no use
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from polyseme.encoders import compiled
from polyseme.encoders.cell import EagerCell, Step, arrays_of
from polyseme.encoders.recurrence import LayerWeights
from polyseme.encoders.signatures import StepShape

SLACK = 16
"""Rows after the last that the kernel may read, though not use."""
_LANES = 16  # cells of a panel: `steps.h`
_PANEL = 4 * _LANES  # their gates
_DEEP = 32  # numbers that a tile takes in
_AT_ONCE = 1024  # rows that one multiplication reads, by torch


class Steps(Protocol):
    """Two ways to do one thing."""

    def run(self, given: Tensor, rows: list[int]) -> Tensor:
        """All steps, from a state of zeros."""


def choose_steps(weights: LayerWeights, dtype: torch.dtype) -> Steps:
    """Compiled, where that is built and fits."""
    library = compiled.load()
    if library is not None and weights.bias.device.type == "cpu":
        kernel = _kernel(library, weights, dtype)
        if kernel is not None:
            return CompiledSteps(kernel, weights, dtype)
    return EagerSteps(weights, dtype)


def _begin(weights: LayerWeights, dtype: torch.dtype, rows: list[int]) -> tuple[Tensor, Tensor]:
    """Room for what all steps give, and what the first finds: nothing."""
    stacks, width, _ = weights.state.shape
    outputs = weights.bias.new_empty(stacks, sum(rows) + SLACK, width, dtype=dtype)
    outputs[:, sum(rows) :] = 0
    return outputs, outputs.new_zeros(stacks, max(rows) + SLACK, width)


def _starts_all(step: int, rows: list[int]) -> bool:
    """Whether the single row of this step stands for all rows of the next."""
    return step == 0 and len(rows) > 1 and rows[1] > rows[0]


class EagerSteps:
    """By torch, on any device."""

    def __init__(self, weights: LayerWeights, dtype: torch.dtype) -> None:
        self._weights = weights
        self._dtype = dtype
        self._input, self._state = weights.input.to(dtype), weights.state.to(dtype)
        projection = weights.projection
        self._projection = None if projection is None else projection.to(dtype)
        self._cell = EagerCell(weights.bias, weights.clips.cell)

    def run(self, given: Tensor, rows: list[int]) -> Tensor:
        """As `Steps` has it."""
        outputs, hidden = _begin(self._weights, self._dtype, rows)
        stacks, cells = len(outputs), self._weights.bias.shape[-1] // 4
        wide = torch.promote_types(self._dtype, torch.float32)
        memory = outputs.new_zeros(2, stacks, max(rows), cells, dtype=wide)
        gates = outputs.new_empty(stacks, max(rows), 4 * cells, dtype=wide)
        cell_outputs = outputs.new_empty(stacks, max(rows), cells)
        begin = until = start = 0
        for step, number in enumerate(rows):
            end = begin + number
            if end > until:
                start, until = begin, _far(rows[step:], begin)
                gate_inputs = torch.bmm(given[:, start:until], self._input)
            now = outputs[:, begin:end]
            cell_output = now if self._projection is None else cell_outputs[:, :number]
            before, after = memory[step % 2], memory[1 - step % 2]
            kept = Step(gates[:, :number], before[:, :number], after[:, :number])
            self._cell.forward(
                gate_inputs[:, begin - start : end - start],
                hidden[:, :number],
                self._state,
                kept,
                cell_output,
            )
            _project(cell_output, self._projection, now, self._weights.clips.output)
            if _starts_all(step, rows):
                after[:] = after[:, :1]
                hidden[:] = now
            else:
                hidden = now
            begin = end
        return outputs


def _far(rows: list[int], begin: int) -> int:
    """Where the steps end that are multiplied together from here."""
    end = begin
    for number in rows:
        if end > begin and end + number > begin + _AT_ONCE:
            break
        end += number
    return end


def _project(
    cell_outputs: Tensor, projection: Tensor | None, outputs: Tensor, clip: float | None
) -> None:
    if projection is not None:
        torch.bmm(cell_outputs, projection, out=outputs)
    if clip is not None:
        outputs.clamp_(-clip, clip)


class _Kernel(NamedTuple):
    step: Callable[..., None]
    pack: Callable[..., None]


def _kernel(library: compiled.Kernel, weights: LayerWeights, dtype: torch.dtype) -> _Kernel | None:
    """The functions for these sizes, if the processor has what they need."""
    _, read, gates = weights.input.shape
    width, name = weights.state.shape[1], str(dtype).removeprefix("torch.")
    if gates % _PANEL or (dtype == torch.bfloat16 and (read % _DEEP or width % _DEEP)):
        return None
    if not library.can_step(name):
        return None
    return _Kernel(getattr(library, f"step_{name}"), getattr(library, f"pack_{name}"))


class CompiledSteps:
    """By `steps.c` and `tiles.c`."""

    def __init__(self, kernel: _Kernel, weights: LayerWeights, dtype: torch.dtype) -> None:
        self._kernel = kernel
        self._weights = weights
        self._dtype = dtype
        self._bias = weights.bias.detach().float().contiguous()
        projection = weights.projection
        self._projection = None if projection is None else projection.to(dtype)

    def run(self, given: Tensor, rows: list[int]) -> Tensor:
        """As `Steps` has it."""
        weights, clips = self._weights, self._weights.clips
        packed = self._packed([weights.input, weights.state])
        outputs, hidden = _begin(weights, self._dtype, rows)
        stacks, cells = len(outputs), self._bias.shape[-1] // 4
        memory = self._bias.new_zeros(stacks, cells // _LANES, max(rows), _LANES)
        cell_outputs = outputs.new_empty(stacks, max(rows), cells)
        shape = StepShape(
            stacks=stacks,
            most_rows=max(rows),
            cells=cells,
            read=given.shape[-1],
            width=outputs.shape[-1],
            threads=torch.get_num_threads(),
            clip=torch.finfo(torch.float32).max if clips.cell is None else clips.cell,
        )
        begin = 0
        for step, number in enumerate(rows):
            now = outputs[:, begin : begin + number]
            cell_output = now if self._projection is None else cell_outputs[:, :number]
            shape.rows = number
            arrays = arrays_of(given[:, begin:], hidden, packed, self._bias, memory, cell_output)
            self._kernel.step(ctypes.byref(shape), arrays)
            _project(cell_output, self._projection, now, clips.output)
            if _starts_all(step, rows):
                memory[:] = memory[:, :, :1]
                hidden[:] = now
            else:
                hidden = now
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
                self._kernel.pack(_address(source), _address(into), sizes)
            begin += part.shape[1]
        return packed


def _address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
