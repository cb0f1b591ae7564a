"""Cross-entropy against many words, loss and gradient in one pass, a few rows at a time.

    in   vectors (N, D), weight (V, D), bias (V,), targets (N,)
    out  the loss summed over N

Autograd would keep a row of V numbers for each of N words until the backward pass. The loss is a
sum, so its gradient is known as soon as a row is; only what it adds to vectors and weights is kept.
"""

from typing import Any

import torch
from torch import Tensor

_CHUNK = 4 << 20  # numbers in one chunk of rows x words: 16 MB
_MIN_ROWS = 32  # however many words: with fewer, the weights are read far more often than used


def summed_cross_entropy(
    vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, negatives: Tensor | None = None
) -> Tensor:
    """Loss summed over rows. With `negatives` (K,), only these words and the target compete."""
    loss: Tensor = _CrossEntropy.apply(vectors, weight, bias, targets, negatives)  # type: ignore[no-untyped-call]
    return loss


def log_probabilities(vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """(N,) natural log of each target's probability among all V words, without gradient."""
    found = vectors.new_empty(len(vectors), dtype=torch.float32)
    columns, offset = weight.to(vectors.dtype).t(), bias.to(vectors.dtype)
    for rows in row_chunks(len(vectors), len(weight)):
        logits = torch.addmm(offset, vectors[rows], columns).float()
        chosen = logits.gather(1, targets[rows, None]).squeeze(1)
        found[rows] = chosen - logits.logsumexp(dim=-1)
    return found


def top_k(vectors: Tensor, weight: Tensor, bias: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """(N, k) natural logs of the highest probabilities among all V words, and (N, k) their ids."""
    log_probs = vectors.new_empty(len(vectors), k, dtype=torch.float32)
    ids = torch.empty(len(vectors), k, dtype=torch.long, device=vectors.device)
    columns, offset = weight.to(vectors.dtype).t(), bias.to(vectors.dtype)
    for rows in row_chunks(len(vectors), len(weight)):
        logits = torch.addmm(offset, vectors[rows], columns).float()
        highest, ids[rows] = logits.topk(k, dim=-1)
        log_probs[rows] = highest - logits.logsumexp(dim=-1, keepdim=True)
    return log_probs, ids


def row_chunks(rows: int, columns: int) -> list[slice]:
    """Rows of a matrix in chunks that fit a processor's cache, or nearly so."""
    step = max(_MIN_ROWS, _CHUNK // max(1, columns))
    return [slice(begin, min(rows, begin + step)) for begin in range(0, rows, step)]


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        negatives: Tensor | None,
    ) -> Tensor:
        dtype = vectors.dtype
        # Without sampled negatives, all words are negatives.
        negative_weight = (weight if negatives is None else weight[negatives]).to(dtype)  # (K, D)
        negative_bias = (bias if negatives is None else bias[negatives]).to(dtype)
        target_weight = weight[targets].to(dtype)  # (N, D)
        target_column = _target_columns(targets, negatives, len(weight))
        total = torch.zeros((), device=vectors.device)
        grad_vectors = torch.empty_like(vectors)
        grad_weight = torch.zeros_like(negative_weight, dtype=torch.float32)
        grad_bias = torch.zeros(len(negative_weight), device=vectors.device)
        grad_target = torch.empty(len(vectors), 1, device=vectors.device)  # of the target's logit
        for rows in row_chunks(len(vectors), len(negative_weight)):
            some = vectors[rows]
            target_logits = (some * target_weight[rows]).sum(dim=-1) + bias[targets[rows]]
            logits = torch.addmm(negative_bias, some, negative_weight.t())
            log_probs = _log_softmax(target_logits, logits, target_column[rows])
            total -= log_probs[:, 0].sum()
            all_probs = log_probs.exp_()
            grad_target[rows], negative_probs = all_probs[:, :1] - 1, all_probs[:, 1:]
            probs = negative_probs.to(dtype)
            torch.mm(probs, negative_weight, out=grad_vectors[rows])
            grad_vectors[rows].addcmul_(grad_target[rows].to(dtype), target_weight[rows])
            grad_weight += torch.mm(probs.t(), some)
            grad_bias += negative_probs.sum(dim=0)
        ctx.save_for_backward(
            vectors, targets, negatives, grad_vectors, grad_weight, grad_bias, grad_target
        )
        ctx.size = len(weight)
        return total

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        vectors, targets, negatives, grad_vectors, *rest = ctx.saved_tensors
        grad_weight, grad_bias, grad_target = rest
        if negatives is not None:
            grad_weight = _scattered(grad_weight, negatives, ctx.size)
            grad_bias = _scattered(grad_bias, negatives, ctx.size)
        grad_weight.index_add_(0, targets, grad_target * vectors)
        grad_bias.index_add_(0, targets, grad_target.squeeze(1))
        grad_vectors = grad_vectors * grad_output.to(grad_vectors.dtype)
        return grad_vectors, grad_weight.mul_(grad_output), grad_bias.mul_(grad_output), None, None


def _scattered(rows: Tensor, ids: Tensor, size: int) -> Tensor:
    """Zeros for all `size` words, but for the rows of these ids."""
    whole = rows.new_zeros(size, *rows.shape[1:])
    whole[ids] = rows
    return whole


def _log_softmax(target_logits: Tensor, logits: Tensor, target_column: Tensor) -> Tensor:
    """Log-probabilities (n, 1 + K): the target's first, then each negative's."""
    both = torch.empty(len(target_logits), logits.shape[1] + 1, device=logits.device)
    both[:, 0] = target_logits
    both[:, 1:] = logits
    # The target competes once: where it is also among the negatives, it is struck out there.
    # Where it is not, its column is 0, and column 0 is written over with itself.
    both.scatter_(1, target_column, torch.where(target_column > 0, -torch.inf, both[:, :1]))
    # Logs, as a probability too small for a float would make the loss infinite.
    return both.log_softmax(dim=-1)


def _target_columns(targets: Tensor, negatives: Tensor | None, size: int) -> Tensor:
    """(N, 1) which column of [target, negatives...] repeats the target; 0 where none does."""
    if negatives is None:
        return targets[:, None] + 1
    column = targets.new_zeros(size)
    column[negatives] = torch.arange(1, len(negatives) + 1, device=targets.device)
    return column[targets][:, None]
