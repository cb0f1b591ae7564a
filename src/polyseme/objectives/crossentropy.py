"""Cross-entropy against many words, loss and gradient in one pass, a few rows at a time.

    in   vectors (N, D), weight (V, D), bias (V,), answers (N,)
    out  the loss summed over N

Autograd would keep a row of V numbers for each of N words until the backward pass. The loss is a
sum, so its gradient is known as soon as a row is; only what it adds to vectors and weights is kept.
"""

from typing import Any

import torch
from torch import Tensor

_CHUNK = 4 << 20  # numbers in one chunk of rows x words: 16 MB
_FEWEST = 32  # rows, however many words: fewer, and the weights are read far more often than used


def summed_cross_entropy(
    vectors: Tensor, weight: Tensor, bias: Tensor, answers: Tensor, among: Tensor | None = None
) -> Tensor:
    """Loss summed over rows. With `among` (K,), only these words and the answer compete."""
    loss: Tensor = _CrossEntropy.apply(vectors, weight, bias, answers, among)  # type: ignore[no-untyped-call]
    return loss


def log_probabilities(vectors: Tensor, weight: Tensor, bias: Tensor, answers: Tensor) -> Tensor:
    """(N,) natural log of each answer's probability among all V words, without gradient."""
    found = vectors.new_empty(len(vectors), dtype=torch.float32)
    columns, offset = weight.to(vectors.dtype).t(), bias.to(vectors.dtype)
    for rows in _chunks(len(vectors), len(weight)):
        logits = torch.addmm(offset, vectors[rows], columns).float()
        chosen = logits.gather(1, answers[rows, None]).squeeze(1)
        found[rows] = chosen - logits.logsumexp(dim=-1)
    return found


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        weight: Tensor,
        bias: Tensor,
        answers: Tensor,
        among: Tensor | None,
    ) -> Tensor:
        dtype = vectors.dtype
        rivals = weight.to(dtype) if among is None else weight[among].to(dtype)  # (K, D)
        rival_bias = (bias if among is None else bias[among]).to(dtype)
        right = weight[answers].to(dtype)  # (N, D)
        place = _places(answers, among, len(weight))
        total = torch.zeros((), device=vectors.device)
        for_vectors = torch.empty_like(vectors)
        for_rivals = torch.zeros_like(rivals, dtype=torch.float32)
        for_bias = torch.zeros(len(rivals), device=vectors.device)
        misses = torch.empty(len(vectors), 1, device=vectors.device)  # slope of the right answer
        for rows in _chunks(len(vectors), len(rivals)):
            some = vectors[rows]
            own = (vectors[rows] * right[rows]).sum(dim=-1) + bias[answers[rows]]
            logits = torch.addmm(rival_bias, some, rivals.t())
            share = _log_shares(own, logits, place[rows])
            total -= share[:, 0].sum()
            miss, share = share.exp_()[:, :1] - 1, share[:, 1:]
            slim = share.to(dtype)
            torch.mm(slim, rivals, out=for_vectors[rows])
            for_vectors[rows].addcmul_(miss.to(dtype), right[rows])
            for_rivals += torch.mm(slim.t(), some)
            for_bias += share.sum(dim=0)
            misses[rows] = miss
        ctx.save_for_backward(vectors, answers, among, for_vectors, for_rivals, for_bias, misses)
        ctx.size = len(weight)
        return total

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        vectors, answers, among, for_vectors, for_rivals, for_bias, misses = ctx.saved_tensors
        if among is None:
            for_weight, for_all = for_rivals, for_bias
        else:
            for_weight = for_rivals.new_zeros(ctx.size, vectors.shape[1])
            for_weight[among] = for_rivals
            for_all = for_bias.new_zeros(ctx.size)
            for_all[among] = for_bias
        for_weight.index_add_(0, answers, misses * vectors)
        for_all.index_add_(0, answers, misses.squeeze(1))
        for_vectors = for_vectors * slope.to(for_vectors.dtype)
        return for_vectors, for_weight.mul_(slope), for_all.mul_(slope), None, None


def _log_shares(own: Tensor, logits: Tensor, place: Tensor) -> Tensor:
    """Log-probabilities (n, 1 + K): the right answer's first, then each rival's."""
    both = torch.empty(len(own), logits.shape[1] + 1, device=own.device)
    both[:, 0] = own
    both[:, 1:] = logits
    # The right answer competes once: where it is also among the rivals, it is struck out there.
    # Where it is not, the place is 0, and column 0 is written over with itself.
    both.scatter_(1, place, torch.where(place > 0, -torch.inf, both[:, :1]))
    # Logs, as a probability too small for a float would make the loss infinite.
    return both.log_softmax(dim=-1)


def _places(answers: Tensor, among: Tensor | None, size: int) -> Tensor:
    """(N, 1) which column of [right answer, rivals...] repeats the answer; 0 where none does."""
    if among is None:
        return answers[:, None] + 1
    column = answers.new_zeros(size)
    column[among] = torch.arange(1, len(among) + 1, device=answers.device)
    return column[answers][:, None]


def _chunks(rows: int, columns: int) -> list[slice]:
    step = max(_FEWEST, _CHUNK // max(1, columns))
    return [slice(begin, min(rows, begin + step)) for begin in range(0, rows, step)]
