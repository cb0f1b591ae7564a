"""One step of an LSTM cell, forward and backward: by torch anywhere, or compiled on a processor.

    in   drive, hidden, weight   (S, B, 4H), (S, B, P), (S, P, 4H): together what drives the gates,
                                 with a bias (S, 4H) that is the same at every step
    out  Step                    gates and cells, for the way back
         emitted                 (S, B, H)   what the cells show, before any projection

Gates are ordered input, forget, output, new. The compiled cell goes through memory once where torch
goes a dozen times. Both work in float32 between reading and writing, whatever the dtype of `drive`.
"""

import ctypes
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from polyseme.encoders import compiled
from polyseme.encoders.signatures import GatesShape, StridedArray


class Step(NamedTuple):
    """What a step reads besides its inputs, and what it leaves for the way back."""

    active: Tensor  # (S, B, 4H) the gates
    before: Tensor  # (S, B, H) the cells it starts from, float32
    now: Tensor  # (S, B, H) the cells it leaves, float32


class Cell(Protocol):
    """Two ways to do one thing; all results are written into tensors that are passed in."""

    kept: torch.dtype
    """In which gates are kept."""

    def forward(
        self, drive: Tensor, hidden: Tensor, weight: Tensor, step: Step, emitted: Tensor
    ) -> None:
        """Fill `step` from its cells before, and `emitted`."""

    def backward(self, step: Step, emitted: Tensor, pull: Tensor, slope: Tensor) -> None:
        """From the gradient of `emitted`: `slope`, of what drove the gates, (S, B, 4H).

        `pull` is the gradient of the cells after the step and becomes that of the cells before it.
        """


def choose_cell(drive: Tensor, bias: Tensor, clip: float | None) -> Cell:
    """The compiled cell where it is built and can be used."""
    if drive.device.type == "cpu" and drive.dtype in _KEPT and drive.is_contiguous():
        library = compiled.load()
        if library is not None:
            return CompiledCell(library, drive, bias, clip)
    return EagerCell(bias, clip)


class EagerCell:
    """The cell by torch, on any device."""

    kept = torch.float32

    def __init__(self, bias: Tensor, clip: float | None) -> None:
        self.bias = bias[:, None]
        self.clip = clip

    def forward(
        self, drive: Tensor, hidden: Tensor, weight: Tensor, step: Step, emitted: Tensor
    ) -> None:
        """As `Cell` has it."""
        gate, now = step.active, step.now
        gate.copy_(torch.baddbmm(drive, hidden, weight))
        gate += self.bias
        cells = now.shape[-1]
        gate[..., : 3 * cells].sigmoid_()
        gate[..., 3 * cells :].tanh_()
        enter, keep, leave, new = gate.chunk(4, dim=-1)
        torch.mul(keep, step.before, out=now)
        now.addcmul_(enter, new)
        if self.clip is not None:
            now.clamp_(-self.clip, self.clip)
        emitted.copy_(leave * now.tanh())

    def backward(self, step: Step, emitted: Tensor, pull: Tensor, slope: Tensor) -> None:
        """As `Cell` has it."""
        emit, curve, gate = emitted.float(), step.now.tanh(), step.active
        enter, keep, leave, new = gate.chunk(4, dim=-1)
        is_wide = slope.dtype == torch.float32
        work = slope if is_wide else torch.empty_like(slope, dtype=torch.float32)
        for_enter, for_keep, for_leave, for_new = work.chunk(4, dim=-1)
        torch.mul(emit, curve, out=for_leave)
        pull += torch.ops.aten.tanh_backward(emit * leave, curve)
        stop_at_clip(pull, step.now, self.clip)
        torch.mul(pull, new, out=for_enter)
        torch.mul(pull, step.before, out=for_keep)
        torch.mul(pull, enter, out=for_new)
        cells = pull.shape[-1]
        sigmoids, tanhs = work[..., : 3 * cells], work[..., 3 * cells :]
        torch.ops.aten.sigmoid_backward.grad_input(
            sigmoids, gate[..., : 3 * cells], grad_input=sigmoids
        )
        torch.ops.aten.tanh_backward.grad_input(tanhs, new, grad_input=tanhs)
        if not is_wide:
            slope.copy_(work)
        pull.mul_(keep)


def stop_at_clip(gradient: Tensor, clipped: Tensor, bound: float | None) -> None:
    """Where a value was cut off, a small change before the cut changes nothing after it."""
    if bound is not None:
        torch.ops.aten.hardtanh_backward.grad_input(
            gradient, clipped, -bound, bound, grad_input=gradient
        )


_KEPT = {torch.float32: torch.float32, torch.bfloat16: torch.int16}  # int16: fixed point


class CompiledCell:
    """The cell by `gates.c`, for one shape of `drive`. Only stacks may lie apart in its tensors."""

    def __init__(
        self, library: ctypes.CDLL, drive: Tensor, bias: Tensor, clip: float | None
    ) -> None:
        stacks, _, rows, gates = drive.shape
        name = str(drive.dtype).removeprefix("torch.")
        self.kept = _KEPT[drive.dtype]
        self._forward = getattr(library, f"forward_{name}")
        self._backward = getattr(library, f"backward_{name}")
        bound = torch.finfo(torch.float32).max if clip is None else clip
        self._shape = GatesShape(stacks, rows, gates // 4, torch.get_num_threads(), bound)
        self._product = drive.new_empty(stacks, rows, gates)
        self._bias = bias.detach().float().contiguous()

    def forward(
        self, drive: Tensor, hidden: Tensor, weight: Tensor, step: Step, emitted: Tensor
    ) -> None:
        """As `Cell` has it."""
        # Added in the kernel: a multiplication that adds would first copy `drive`.
        torch.bmm(hidden, weight, out=self._product)
        kept = (step.before, step.active, step.now)
        arrays = arrays_of(drive, self._product, *kept, emitted, self._bias)
        self._forward(ctypes.byref(self._shape), arrays)

    def backward(self, step: Step, emitted: Tensor, pull: Tensor, slope: Tensor) -> None:
        """As `Cell` has it."""
        arrays = arrays_of(step.active, step.before, step.now, emitted, pull, slope)
        self._backward(ctypes.byref(self._shape), arrays)


def arrays_of(*tensors: Tensor) -> ctypes.Array[StridedArray]:
    """Where tensors begin and how far apart their stacks lie, as the kernels take them."""
    # The caller holds the tensors while the kernel works on them.
    arrays = (StridedArray(each.data_ptr(), each.stride(0)) for each in tensors)
    return (StridedArray * len(tensors))(*arrays)
