"""Arithmetic in which a sentence's bits depend on that sentence alone.

A multiplication may add up in another order when it has more rows, and a function may be worked out
by other instructions at the end of an array than inside it. So the last bits of a vector change
with the company it is in. Here every multiplication has the same number of rows, whatever the
lengths and the neighbours, and every function sees arrays of one size; what is left over is filled
with zeros. It takes longer, and is for those who compare bits.

Sums and products of two numbers, the larger of two, and clips are exact wherever they stand.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyseme.encoders.recurrence import LayerWeights, State

ROWS = 32
"""Rows of every multiplication, where the caller does not set them."""
_CHUNK = 16_384  # numbers; fewer than torch shares out among threads


def evenly(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """A function of single numbers, any shape."""
    flat = fill(values.reshape(-1), _CHUNK)
    done = [function(chunk) for chunk in torch.split(flat, _CHUNK)]
    return torch.cat(done)[: values.numel()].view(values.shape)


def fill(values: Tensor, multiple: int, dim: int = 0) -> Tensor:
    """With zeros after the end of a dimension, up to a multiple."""
    missing = -values.shape[dim] % multiple
    after = (0, 0) * (values.dim() - 1 - dim % values.dim()) + (0, missing)
    return functional.pad(values, after) if missing else values


def linear(vectors: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(..., D) -> (..., W), some rows at a time; `weight` is (W, D) as in `nn.Linear`."""
    flat = fill(vectors.reshape(-1, vectors.shape[-1]), ROWS)
    blocks = [functional.linear(block.clone(), weight, bias) for block in torch.split(flat, ROWS)]
    number = vectors.shape[:-1].numel()
    rows = torch.cat(blocks)[:number] if blocks else flat.new_empty(0, len(weight))
    return rows.view(*vectors.shape[:-1], len(weight))


def recur(inputs: Tensor, weights: LayerWeights, state: State) -> tuple[Tensor, State]:
    """As `recurrence.recur`, from inputs (S, T, B, D). The number of rows B is the caller's."""
    hidden, cell = state
    outputs = []
    for step in inputs.unbind(dim=1):
        # Copies begin where memory is aligned, which multiplications look at.
        gate_inputs = torch.bmm(step.contiguous(), weights.input) + torch.bmm(hidden, weights.state)
        gates = gate_inputs.to(cell.dtype) + weights.bias[:, None]
        *opened, candidate = gates.chunk(4, dim=-1)
        input_gate, forget_gate, output_gate = (evenly(torch.sigmoid, gate) for gate in opened)
        cell = _clip(
            forget_gate * cell + input_gate * evenly(torch.tanh, candidate), weights.clips.cell
        )
        hidden = output_gate * evenly(torch.tanh, cell)
        if weights.projection is not None:
            hidden = torch.bmm(hidden.to(weights.projection.dtype), weights.projection)
        hidden = _clip(hidden, weights.clips.output).to(inputs.dtype)
        outputs.append(hidden)
    return torch.stack(outputs, dim=1), State(hidden, cell)


def _clip(values: Tensor, bound: float | None) -> Tensor:
    return values if bound is None else values.clamp(-bound, bound)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Attention, each (B, heads, T, D) with T a multiple of ROWS; without a mask, to no later word.

    `mask` is (B, 1, 1, T), True at words. Blocks of words that are not seen add zeros.
    """
    rows, heads, steps, width = query.shape
    # A column of ones: what it gathers is what all weights sum to.
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    queries, keys, values = (
        torch.split(each.reshape(rows * heads, steps, -1), ROWS, dim=1)
        for each in (query, key, value)
    )
    seen = []
    for number, asking in enumerate(queries):
        reach = len(keys) if mask is not None else number + 1
        asks = asking.contiguous() * width**-0.5
        scores = [
            torch.bmm(asks, each.transpose(1, 2).contiguous()).float() for each in keys[:reach]
        ]
        scores = _hide(scores, mask, heads)
        largest = torch.stack([each.amax(dim=-1) for each in scores]).amax(dim=0)[..., None]
        gathered = torch.zeros((), dtype=value.dtype, device=value.device)
        for score, each in zip(scores, values, strict=False):
            weights = evenly(torch.exp, score - largest).to(value.dtype)
            gathered = gathered + torch.bmm(weights, each.contiguous())
        seen.append(gathered[..., :width] / gathered[..., width:])
    return torch.cat(seen, dim=1).view(rows, heads, steps, width)


def _hide(scores: list[Tensor], mask: Tensor | None, heads: int) -> list[Tensor]:
    """No weight to later words, or with a mask to what is no word."""
    if mask is None:
        later = torch.ones(ROWS, ROWS, dtype=torch.bool, device=scores[0].device).triu(1)
        return [*scores[:-1], scores[-1].masked_fill(later, -torch.inf)]
    hidden = ~mask.expand(-1, heads, -1, -1).reshape(-1, 1, mask.shape[-1])
    parts = torch.split(hidden, ROWS, dim=-1)
    return [each.masked_fill(part, -torch.inf) for each, part in zip(scores, parts, strict=True)]


def peaks(letters: Tensor, filters: nn.Module) -> Tensor:
    """(U, C, E) -> (U, F) the largest value of each filter of an `nn.Conv1d`; window by window."""
    assert isinstance(filters, nn.Conv1d)
    weight, bias = filters.weight, filters.bias
    width = weight.shape[-1]
    flat = weight.transpose(1, 2).reshape(len(weight), -1)  # (F, width * E)
    windows = [letters[:, begin : begin + width] for begin in range(letters.shape[1] - width + 1)]
    highest = linear(windows[0].flatten(1), flat, bias)
    for window in windows[1:]:
        highest = torch.maximum(highest, linear(window.flatten(1), flat, bias))
    return highest
