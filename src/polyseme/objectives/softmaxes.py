"""From a vector to a word of the vocabulary: full or sampled.

Both are measured alike, by the probability among all words. They differ in what a training step
costs: full grows with the vocabulary, sampled does not.

Cross-entropy against many words takes loss and gradient in one pass, a few rows at a time.

    in   vectors (N, D), weight (V, D), bias (V,), targets (N,)
    out  the loss summed over N

Autograd would keep a row of V numbers for each of N words until the backward pass. The loss is a
sum, so its gradient is known as soon as a row is; only what it adds to vectors and weights is kept.
From logits to probabilities, row by row: by torch anywhere, or compiled on a processor.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import PAD
from polyseme.encoders.cell import arrays_of
from polyseme.encoders.kernels import loader
from polyseme.encoders.kernels.loader import Kernel, SoftmaxShape
from polyseme.objectives.prediction import HeldOutMeasure, Negatives


class FullSoftmaxConfig(Settings):
    """Every word competes at every step."""

    kind: Literal["full"] = "full"
    tied: bool = False
    """Whether the output embeddings are tied to the input word embeddings."""


class SampledSoftmaxConfig(Settings):
    """The target competes with negatives sampled by frequency, the same for the whole batch."""

    kind: Literal["sampled"] = "sampled"
    num_samples: int = Field(8192, ge=1, le=10_000_000)
    """How many negatives are sampled at each step."""
    tied: bool = False
    """Whether the output embeddings are tied to the input word embeddings."""


SoftmaxConfig = Annotated[FullSoftmaxConfig | SampledSoftmaxConfig, Field(discriminator="kind")]


class WordSoftmax(nn.Module):
    """A vector and a bias for each word. Tied, the vectors are the input's."""

    measure: HeldOutMeasure = "perplexity"

    def __init__(self, config: SoftmaxConfig, *, vocab_size: int, dim: int) -> None:
        super().__init__()
        self.config = config
        self.weight = None
        if not config.tied:
            self.weight = nn.Parameter(torch.randn(vocab_size, dim) * dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def sample_negatives(self, random: np.random.Generator) -> Negatives | None:
        """The words that will compete with the targets in one step."""
        if not isinstance(self.config, SampledSoftmaxConfig):
            return None
        return sample_negatives(self.config.num_samples, len(self.bias), random)

    def losses(
        self,
        parts: Sequence[tuple[Tensor, Tensor]],
        *,
        table: Tensor | None,
        negatives: Negatives | None,
    ) -> Sequence[Tensor]:
        """What training lowers, for each (N, D) vectors and (N,) targets summed over them."""
        weight = self._weight(table)
        if negatives is None:
            return summed_cross_entropies(parts, weight, self.bias)
        # A word sampled often competes often; subtracting the log of how likely it is to be
        # sampled makes the sampled softmax, on average, the full one (Jean et al., 2015).
        bias = self.bias - log_q(len(self.bias), negatives.num_tries, weight.device)
        return summed_cross_entropies(parts, weight, bias, negatives.ids)

    def log_probabilities(
        self, vectors: Tensor, targets: Tensor, *, table: Tensor | None
    ) -> Tensor:
        """(N,) natural log of each target's probability among all words."""
        return log_probabilities(vectors, self._weight(table), self.bias, targets)

    def top_k(self, vectors: Tensor, k: int, *, table: Tensor | None) -> tuple[Tensor, Tensor]:
        """(N, k) natural logs of the highest probabilities, falling; and (N, k) their words."""
        return top_k(vectors, self._weight(table), self.bias, k)

    def logits(self, vectors: Tensor, ids: Tensor, *, table: Tensor | None) -> Tensor:
        """(N, K) log-probabilities of these K words, up to a constant for each vector."""
        return torch.addmm(self.bias[ids], vectors, self._weight(table)[ids].t())

    def _weight(self, table: Tensor | None) -> Tensor:
        if self.weight is not None:
            return self.weight
        assert table is not None
        return table


def sample_negatives(number: int, vocab_size: int, random: np.random.Generator) -> Negatives:
    """So many different ids, low ones (frequent words) more often: log-uniform over ranks.

    Padding is never sampled. With `number` at or above all there are, all are taken.
    """
    ranks = vocab_size - 1
    if number >= ranks:
        return Negatives(torch.arange(1, vocab_size), num_tries=0)
    seen = np.empty(0, np.int64)
    while True:
        uniform = random.random(4 * number)
        more = np.minimum(np.exp(uniform * np.log(ranks + 1)).astype(np.int64), ranks) + PAD
        seen = np.concatenate([seen, more])
        distinct, first = np.unique(seen, return_index=True)
        if len(distinct) >= number:
            break
    # The draw that brought the last one wanted; later ones never happened.
    num_tries = int(np.sort(first)[number - 1]) + 1
    return Negatives(torch.from_numpy(distinct[first < num_tries]), num_tries)


def log_q(vocab_size: int, num_tries: int, device: torch.device) -> Tensor:
    """(V,) log of the probability that each id is among the negatives after so many draws."""
    if num_tries == 0:
        return torch.zeros(vocab_size, device=device)
    rank = torch.arange(vocab_size, device=device, dtype=torch.float64).clamp(min=1)
    probability = torch.log1p(1 / rank) / np.log(vocab_size)
    return (-torch.expm1(num_tries * torch.log1p(-probability))).log().float()


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


_CHUNK = 4 << 20  # numbers in one chunk of rows x words: 16 MB
_MIN_ROWS = 32  # however many words: with fewer, the weights are read far more often than used


def summed_cross_entropies(
    parts: Sequence[tuple[Tensor, Tensor]],
    weight: Tensor,
    bias: Tensor,
    negatives: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """For each of several vectors and targets the loss summed over rows; the weights' gradient is
    made once. With `negatives` (K,), only these words and the target compete."""
    flat = [tensor for part in parts for tensor in part]
    found: Tensor = _CrossEntropies.apply(weight, bias, negatives, *flat)  # type: ignore[no-untyped-call]
    return found.unbind()


def log_probabilities(vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """(N,) natural log of each target's probability among all V words, without gradient."""
    found = vectors.new_empty(len(vectors), dtype=torch.float32)
    columns, bias = weight.detach().to(vectors.dtype).t(), bias.detach().float()
    for rows in row_chunks(len(vectors), len(weight)):
        logits = torch.mm(vectors[rows], columns)
        chosen = logits.gather(1, targets[rows, None]).squeeze(1).float() + bias[targets[rows]]
        found[rows] = chosen - log_sum_exp(logits, bias)
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


class _Part(NamedTuple):
    """Vectors, the words they are to predict, and gradients as if nothing came after the loss."""

    vectors: Tensor  # (N, D)
    targets: Tensor  # (N,)
    grad_vectors: Tensor  # (N, D)
    grad_weight: Tensor  # (K, D) of the words that compete
    grad_bias: Tensor  # (K,)
    grad_target: Tensor  # (N, 1) of the target's logit


class _CrossEntropies(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor, negatives: Tensor | None, *flat: Tensor
    ) -> Tensor:
        dtype = flat[0].dtype
        # Without sampled negatives, all words are negatives.
        negative_weight = (weight if negatives is None else weight[negatives]).to(dtype)  # (K, D)
        negative_bias = (bias if negatives is None else bias[negatives]).float()
        losses: list[Tensor] = []
        saved: list[Tensor] = []
        for vectors, targets in zip(flat[::2], flat[1::2], strict=True):
            part = _Part(
                vectors,
                targets,
                torch.empty_like(vectors),
                torch.zeros_like(negative_weight, dtype=torch.float32),
                torch.zeros_like(negative_bias),
                torch.empty(len(vectors), 1, device=vectors.device),
            )
            target_logits = _target_logits(vectors, weight, bias, targets)
            struck = _struck_columns(targets, negatives, len(weight))
            losses.append(_fill(part, negative_weight, negative_bias, target_logits, struck))
            part.grad_vectors.addcmul_(part.grad_target.to(dtype), weight[targets].to(dtype))
            saved += part
        ctx.save_for_backward(negatives, *saved)
        ctx.size = len(weight)
        return torch.stack(losses)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        negatives, *saved = ctx.saved_tensors
        size = len(_Part._fields)
        parts = [_Part(*saved[begin : begin + size]) for begin in range(0, len(saved), size)]
        both = list(zip(parts, grad_output, strict=True))
        grad_weight = _add_scaled([(part.grad_weight, scale) for part, scale in both])
        grad_bias = _add_scaled([(part.grad_bias, scale) for part, scale in both])
        if negatives is not None:
            grad_weight = _scattered(grad_weight, negatives, ctx.size)
            grad_bias = _scattered(grad_bias, negatives, ctx.size)
        flat: list[Tensor | None] = []
        for part, scale in both:
            grad_target = part.grad_target * scale
            grad_weight.index_add_(0, part.targets, grad_target * part.vectors)
            grad_bias.index_add_(0, part.targets, grad_target.squeeze(1))
            flat += [part.grad_vectors * scale.to(part.grad_vectors.dtype), None]
        return grad_weight, grad_bias, None, *flat


def _fill(
    part: _Part, weight: Tensor, bias: Tensor, target_logits: Tensor, struck: Tensor
) -> Tensor:
    """Work out the gradients against the words that compete, all but the target. The loss."""
    total = torch.zeros((), device=weight.device)
    chunks = row_chunks(len(part.vectors), len(weight))
    room = weight.new_empty(chunks[0].stop if chunks else 0, len(weight))
    for rows in chunks:
        some = part.vectors[rows]
        # Into what is there already: as `out`, autocast leaves it alone, too.
        logits = torch.mm(some, weight.t(), out=room[: len(some)])
        log_probs, probs = to_probabilities(
            logits, bias, target_logits[rows], struck[rows], part.grad_bias
        )
        total -= log_probs.sum()
        part.grad_target[rows, 0] = log_probs.exp() - 1
        torch.mm(probs, weight, out=part.grad_vectors[rows])
        if probs.dtype == torch.float32:
            part.grad_weight.addmm_(probs.t(), some)
        else:
            part.grad_weight.add_(torch.mm(probs.t(), some))
    return total


def _target_logits(vectors: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """(N,) float32"""
    products = vectors * weight[targets].to(vectors.dtype)
    return products.sum(dim=-1).float() + bias[targets].float()


def _add_scaled(scaled: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    (first, scale), *others = scaled
    total = first * scale
    for each, scale in others:
        total.addcmul_(each, scale)
    return total


def _scattered(rows: Tensor, ids: Tensor, size: int) -> Tensor:
    """Zeros for all `size` words, but for the rows of these ids."""
    whole = rows.new_zeros(size, *rows.shape[1:])
    whole[ids] = rows
    return whole


def _struck_columns(targets: Tensor, negatives: Tensor | None, size: int) -> Tensor:
    """(N,) which of the negatives repeats the target, -1 where none does: it competes once."""
    if negatives is None:
        return targets
    column = targets.new_full((size,), -1)
    column[negatives] = torch.arange(len(negatives), device=targets.device)
    return column[targets]
