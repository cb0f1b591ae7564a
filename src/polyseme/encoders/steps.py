"""The steps of one LSTM layer without gradients, by torch or compiled.

Packed sentences:
    in   inputs   (S, N + SLACK, D)   words of all sentences, packed step after step
         batch_sizes                  how many sentences have a word at each step, as in
                                      `nn.utils.rnn.PackedSequence`: falling, sum N; but the first
                                      may be a single row that stands for all
    out  outputs  (S, N + SLACK, P)   what lies after row N is of no use
A few sentences:
    in   gate_inputs  (S, N, 4H)      what inputs add to the gates, and the state before
    out  outputs      (S, N, P)       and the cells after

A few sentences wait for the weights to come from memory, again at every step. Those of a model that
is stored in float16 lose nothing in that form, and half as much has to come. Others are left to the
other ways: rounded weights would be another model.
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from polyseme.encoders.cell import EagerCell, LayerWeights, State, Step, arrays_of, bound_of
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel, RowsShape, StepShape

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


MOST_ROWS, MOST_WORDS = 48, 2048
"""More rows are sooner read by others, and of more words the inputs to the gates take much room."""


class FewRows:
    """For the weights of one layer, which are packed when they are first used or have changed."""

    def __init__(self) -> None:
        self._made_of: tuple[object, ...] = ()
        self._packed: _Packed | None = None

    def can_run(self, weights: LayerWeights, dtype: torch.dtype, batch_sizes: list[int]) -> bool:
        """Whether this is a way to do it, and the better one."""
        if torch.is_grad_enabled() or dtype != torch.float32 or weights.bias.device.type != "cpu":
            return False
        if max(batch_sizes) > MOST_ROWS or sum(batch_sizes) > MOST_WORDS:
            return False
        return self._pack(weights) is not None

    def run(
        self,
        gate_inputs: Tensor,
        batch_sizes: list[int],
        weights: LayerWeights,
        state: State | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs, and the cells after the last step of each row."""
        kernel, packed = loader.load(), self._pack(weights)
        assert kernel is not None
        assert packed is not None
        stacks, _, gates = gate_inputs.shape
        rows, proj_size = max(batch_sizes), weights.weight_hh.shape[1]
        room = gate_inputs.new_zeros
        outputs = gate_inputs.new_empty(stacks, gate_inputs.shape[1], proj_size)
        hidden, cells = room(stacks, rows, proj_size), room(stacks, rows, gates // 4)
        if state is not None:
            hidden.copy_(state.hidden)
            cells.copy_(state.cell)
        shape = RowsShape(
            stacks=stacks,
            steps=len(batch_sizes),
            hidden_size=gates // 4,
            proj_size=proj_size,
            threads=torch.get_num_threads(),
            cell_clip=bound_of(weights.clips.cell),
            output_clip=bound_of(weights.clips.output),
        )
        sizes = torch.tensor(batch_sizes)
        bias, cell_outputs = weights.bias.contiguous(), torch.empty_like(cells)
        arrays = arrays_of(gate_inputs, sizes, *packed, bias, hidden, cells, outputs, cell_outputs)
        kernel.few_rows_float16(ctypes.byref(shape), arrays)
        return outputs, cells

    def _pack(self, weights: LayerWeights) -> "_Packed | None":
        kernel, parts = loader.load(), (weights.weight_hh, weights.weight_hr)
        if kernel is None or any(each is not None and each.is_inference() for each in parts):
            return None  # such tensors do not tell when they were changed
        made_of = (kernel.digest, *(_identity(each) for each in parts if each is not None))
        if made_of != self._made_of:
            self._packed, self._made_of = _Packed.of(kernel, *parts), made_of
        return self._packed


def _identity(weight: Tensor) -> tuple[int, int]:
    """Where it lies tells of one that took its place; its version, of changes within."""
    return weight.data_ptr(), weight._version  # noqa: SLF001  # autograd's own count; no other name


class _Packed(NamedTuple):
    """Weights in the order in which `few_rows.c` reads them."""

    weights: Tensor
    projection: Tensor | None

    @classmethod
    def of(cls, kernel: Kernel, hh: Tensor, hr: Tensor | None) -> "_Packed | None":
        """None if the kernel does not read such sizes, or float16 does not hold the numbers."""
        if not hasattr(kernel, "few_rows_float16"):
            return None
        cells = kernel.panel_cells()
        stacks, proj_size, gates = hh.shape
        if gates % (4 * cells) or (hr is not None and proj_size % (4 * cells)):
            return None
        if not all(torch.equal(each.half().float(), each) for each in (hh, hr) if each is not None):
            return None
        panels = hh.detach().half().view(stacks, proj_size, 4, -1, cells).permute(0, 3, 1, 2, 4)
        packed = panels.reshape(stacks, -1)
        if hr is None:
            return cls(packed, None)
        panels = hr.detach().half().view(stacks, -1, proj_size // (4 * cells), 4 * cells)
        return cls(packed, panels.transpose(1, 2).reshape(stacks, -1))
