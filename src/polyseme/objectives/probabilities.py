"""From logits to probabilities, row by row: by torch anywhere, or compiled on a processor.

    in   logits (N, K) without their bias (K,); the logit of each row's target (N,)
    out  the log-probability of each target (N,), and the probabilities of all K others

The compiled way goes through memory once where torch goes half a dozen times.
"""

import ctypes
import math

import torch
from torch import Tensor

from polyseme.encoders.cell import arrays_of
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel, SoftmaxShape

_GROUPS = 8  # of rows, each with sums of its own: for as many threads, and for the same sums
_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def to_probabilities(
    logits: Tensor, bias: Tensor, target_logits: Tensor, struck: Tensor, grad_bias: Tensor
) -> tuple[Tensor, Tensor]:
    """(N,) log-probabilities of the targets, and (N, K) those of the others; `logits` are used up.

    The target competes once: `struck` (N,) is the column in which it is repeated, or -1.
    `grad_bias` (K,) is added what the bias of each column gets.
    """
    kernel = _kernel_for(logits)
    if kernel is None:
        return _by_torch(logits, bias, target_logits, struck, grad_bias)
    maxima, totals = torch.empty(2, len(logits))
    scratch = torch.empty(_GROUPS, logits.shape[1])
    sums = torch.zeros_like(scratch)
    arrays = (logits, bias[None].expand(len(logits), -1), target_logits, struck)
    _call(kernel, "softmax", *arrays, maxima, totals, scratch, sums)
    grad_bias += sums.sum(dim=0)
    return target_logits - maxima - totals.log(), logits


def log_sum_exp(logits: Tensor, bias: Tensor) -> Tensor:
    """(N, K) and (K,) -> (N,) float32, of logits and bias together."""
    kernel = _kernel_for(logits)
    if kernel is None:
        return torch.logsumexp(logits.float() + bias, dim=-1)
    maxima, totals = torch.empty(2, len(logits))
    scratch = torch.empty(_GROUPS, logits.shape[1])
    every = bias[None].expand(len(logits), -1)
    _call(kernel, "sum_softmax", logits, every, totals, totals, maxima, totals, scratch, scratch)
    return torch.add(maxima, totals.log())


def _kernel_for(logits: Tensor) -> Kernel | None:
    is_ours = logits.device.type == "cpu" and logits.dtype in _NAMES and logits.stride(-1) == 1
    return loader.load() if is_ours else None


def _call(kernel: Kernel, what: str, logits: Tensor, *others: Tensor) -> None:
    shape = SoftmaxShape(*logits.shape, _GROUPS, torch.get_num_threads())
    function = getattr(kernel, f"{what}_{_NAMES[logits.dtype]}")
    function(ctypes.byref(shape), arrays_of(logits, *others))


def _by_torch(
    logits: Tensor, bias: Tensor, target_logits: Tensor, struck: Tensor, grad_bias: Tensor
) -> tuple[Tensor, Tensor]:
    both = torch.empty(len(logits), logits.shape[1] + 1, device=logits.device)
    both[:, 0] = target_logits
    torch.add(logits, bias, out=both[:, 1:])
    # Where the target is not repeated, column 0 is written over with itself.
    column = struck[:, None] + 1
    both.scatter_(1, column, torch.where(column > 0, -math.inf, both[:, :1]))
    # Logs, as a probability too small for a float would make the loss infinite.
    log_probs = both.log_softmax(dim=-1)
    of_targets = log_probs[:, 0].clone()
    probs = log_probs.exp_()[:, 1:]
    grad_bias += probs.sum(dim=0)
    return of_targets, probs.to(logits.dtype)
