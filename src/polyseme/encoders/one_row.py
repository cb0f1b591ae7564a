"""All steps of one LSTM layer for a single sentence, compiled, from weights kept in float16.

    in   gate_inputs  (S, T, 1, 4H)   as `recur` has them, and the state before the first step
    out  outputs      (S, T, 1, P)    and the state after the last

One sentence waits for the weights to come from memory, again at every step. Those of a model that
is stored in float16 lose nothing in that form, and half as much has to come. Others are left to
`recur`: rounded weights would be another model.
"""

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.encoders.cell import arrays_of, bound_of
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel, RowShape
from polyseme.encoders.recurrence import LayerWeights, State


class OneRow:
    """For the weights of one layer, which are packed when they are first used or have changed."""

    def __init__(self) -> None:
        self._made_of: tuple[object, ...] = ()
        self._packed: _Packed | None = None

    def can_run(self, weights: LayerWeights) -> bool:
        """Whether this is a way to do it on a processor."""
        kernel = loader.load()
        return kernel is not None and self._pack(kernel, weights) is not None

    def run(
        self, gate_inputs: Tensor, weights: LayerWeights, state: State
    ) -> tuple[Tensor, State] | None:
        """None where this is not the way to do it: ask `recur`."""
        is_plain = gate_inputs.device.type == "cpu" and gate_inputs.dtype == torch.float32
        if gate_inputs.shape[2] != 1 or torch.is_grad_enabled() or not is_plain:
            return None
        kernel = loader.load()
        packed = None if kernel is None else self._pack(kernel, weights)
        if kernel is None or packed is None:
            return None
        stacks, steps, _, gates = gate_inputs.shape
        outputs = gate_inputs.new_empty(stacks, steps + 1, weights.weight_hh.shape[1])
        outputs[:, 0] = state.hidden[:, 0]
        cell = state.cell[:, 0].clone(memory_format=torch.contiguous_format)
        gate_inputs, bias = gate_inputs.contiguous(), weights.bias.contiguous()
        scratch = gate_inputs.new_empty(stacks, gates // 4)
        shape = RowShape(
            stacks=stacks,
            steps=steps,
            hidden_size=gates // 4,
            proj_size=outputs.shape[-1],
            threads=torch.get_num_threads(),
            cell_clip=bound_of(weights.clips.cell),
            output_clip=bound_of(weights.clips.output),
        )
        arrays = arrays_of(gate_inputs, *packed, bias, cell, outputs, scratch)
        kernel.one_row_float16(ctypes.byref(shape), arrays)
        return outputs[:, 1:, None], State(outputs[:, -1:], cell[:, None])

    def _pack(self, kernel: Kernel, weights: LayerWeights) -> "_Packed | None":
        parts = (weights.weight_hh, weights.weight_hr)
        if any(each is not None and each.is_inference() for each in parts):
            return None  # such tensors do not tell when they were changed
        made_of = (kernel.digest, *(_identity(each) for each in parts if each is not None))
        if made_of != self._made_of:
            self._packed, self._made_of = _Packed.of(kernel, *parts), made_of
        return self._packed


def _identity(weight: Tensor) -> tuple[int, int]:
    """Where it lies tells of one that took its place; its version, of changes within."""
    return weight.data_ptr(), weight._version  # noqa: SLF001  # autograd's own count; no other name


class _Packed(NamedTuple):
    """Weights in the order in which `one_row.c` reads them."""

    weights: Tensor
    projection: Tensor | None

    @classmethod
    def of(cls, kernel: Kernel, hh: Tensor, hr: Tensor | None) -> "_Packed | None":
        """None if the kernel does not read such sizes, or float16 does not hold the numbers."""
        if not hasattr(kernel, "one_row_float16"):
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
