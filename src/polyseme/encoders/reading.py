"""Many sentences through the layers of an LSTM when nothing is learnt from them.

    in   distinct (U, D), words (B, T), lengths (B,)    as `Encoder.in_context` has them
    out  L times (B, T, D), zero where there is no word

Gives what `Lstm.forward` gives, but for rounding, in less time: sentences are read side by side,
the longest first, so that a step works only on those that still have a word; where marks are of no
interest, the first is read once for all sentences and the last not at all; and nothing is kept for
a way back.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.encoders.lstm import Lstm
from polyseme.encoders.steps import SLACK, choose_steps

FEWEST_WORDS = 256
"""Fewer are sooner read by `Lstm.forward`: here the weights are first put into another order."""


class Layout(NamedTuple):
    """How words lie: step after step, at each step the sentences that have a word there."""

    rows: list[int]  # T numbers: sentences at each step
    places: Tensor  # (S, N) where each word stands in (B, T) laid flat; stack 1 reads backward

    @classmethod
    def of(cls, lengths: Tensor, steps: int, stacks: int, *, marks: bool = True) -> "Layout":
        """From the lengths of sentences in any order.

        Without `marks`, step 0 has a single row, which stands for all sentences, and nothing is
        read that no later word depends on.
        """
        ordered, order = lengths.sort(descending=True, stable=True)
        is_word = torch.arange(steps, device=lengths.device)[:, None] < ordered  # (T, B)
        if not marks:
            is_word = is_word[1:]  # at each step, those with a word after it
            is_word[0, 1:] = False
        step, rank = is_word.nonzero(as_tuple=True)
        begin = order[rank] * steps
        ways = [begin + step, begin + ordered[rank] - 1 - step]
        return cls(is_word.sum(dim=1).tolist(), torch.stack(ways[:stacks]))


@torch.no_grad()
def read(
    lstm: Lstm, distinct: Tensor, words: Tensor, lengths: Tensor, *, marks: bool = True
) -> tuple[Tensor, ...]:
    """Every layer's vectors. Without `marks`, those of each sentence's first and last place may
    be zero: there stand marks, the same for all.
    """
    dtype = _working_dtype(distinct)
    stacks = 1 if lstm.direction == "forward" else 2
    # Read together, a sentence's marks are seen from all its words.
    marks = marks or lstm.direction == "together"
    layout = Layout.of(lengths, words.shape[1], stacks, marks=marks)
    given = _gather(distinct.to(dtype), words.flatten()[layout.places])
    outputs: list[Tensor] = []
    for number, weights in enumerate(lstm.weights()):
        found = choose_steps(weights, dtype).run(given, layout.rows)
        is_residual = lstm.config.residual and number > 0
        if lstm.direction == "together":
            vectors = _words_first(found, layout, words.shape)
            outputs.append(vectors + outputs[-1] if is_residual else vectors)
            given = _gather(outputs[-1].flatten(0, 1), layout.places)
        else:
            given = found + given if is_residual else found
            outputs.append(_words_first(given, layout, words.shape))
    return tuple(outputs)


def _gather(vectors: Tensor, places: Tensor) -> Tensor:
    """(U, D) and (S, N) -> (S, N + SLACK, D)"""
    stacks, number = places.shape
    given = vectors.new_zeros(stacks, number + SLACK, vectors.shape[1])
    for into, which in zip(given, places, strict=True):
        torch.index_select(vectors, 0, which, out=into[:number])
    return given


def _working_dtype(vectors: Tensor) -> torch.dtype:
    kind = vectors.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else vectors.dtype


def _words_first(given: Tensor, layout: Layout, shape: torch.Size) -> Tensor:
    """(S, N + SLACK, P) -> (B, T, S * P)"""
    stacks, _, width = given.shape
    flat = given.new_zeros(shape.numel(), stacks, width)
    for stack, places in enumerate(layout.places):
        flat[:, stack].index_copy_(0, places, given[stack, : len(places)])
    return flat.view(*shape, stacks * width)
