"""Many sentences through the layers of an LSTM when no gradient is needed.

    in   distinct (U, D), words (B, T), lengths (B,)    as `Encoder.contextualize` has them
    out  L times (B, T, D), zero where there is no word

Gives what `Lstm.forward` gives, but for rounding, in less time. Sentences are packed, the longest
first, as in `nn.utils.rnn.PackedSequence`, so that a step works only on those that still have a
word. Where special tokens are of no interest, the first is read once for all sentences and the last
not at all. And nothing is kept for a backward pass.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.encoders.lstm import Lstm
from polyseme.encoders.steps import SLACK, choose_steps

MIN_WORDS = 256
"""Fewer are sooner read by `Lstm.forward`: here the weights are first put into another order."""


class Packing(NamedTuple):
    """Words packed step after step, at each step those of the sentences that are so long."""

    batch_sizes: list[int]  # T numbers: sentences at each step
    positions: Tensor  # (S, N) each word's position in (B, T) laid flat; stack 1 reads backward

    @classmethod
    def of(
        cls, lengths: Tensor, steps: int, stacks: int, *, special_tokens: bool = True
    ) -> "Packing":
        """From the lengths of sentences in any order.

        Without `special_tokens`, step 0 has a single row, which stands for all sentences, and
        nothing is read that no later word depends on.
        """
        ordered, order = lengths.sort(descending=True, stable=True)
        is_word = torch.arange(steps, device=lengths.device)[:, None] < ordered  # (T, B)
        if not special_tokens:
            is_word = is_word[1:]  # at each step, those with a word after it
            is_word[0, 1:] = False
        step, rank = is_word.nonzero(as_tuple=True)
        begin = order[rank] * steps
        positions = [begin + step, begin + ordered[rank] - 1 - step]
        return cls(is_word.sum(dim=1).tolist(), torch.stack(positions[:stacks]))


@torch.no_grad()
def run_packed(
    lstm: Lstm, distinct: Tensor, words: Tensor, lengths: Tensor, *, special_tokens: bool = True
) -> tuple[Tensor, ...]:
    """Every layer's vectors. Without `special_tokens`, those of each sentence's first and last
    position, BOS and EOS, may be zero.
    """
    dtype = _working_dtype(distinct)
    stacks = 1 if lstm.direction == "forward" else 2
    # With direction 'joint', BOS and EOS are seen from all words of their sentence.
    special_tokens = special_tokens or lstm.direction == "joint"
    packing = Packing.of(lengths, words.shape[1], stacks, special_tokens=special_tokens)
    inputs = _pack(distinct.to(dtype), words.flatten()[packing.positions])
    outputs: list[Tensor] = []
    for number, weights in enumerate(lstm.weights()):
        found = choose_steps(weights, dtype).run(inputs, packing.batch_sizes)
        is_residual = lstm.config.residual and number > 0
        if lstm.direction == "joint":
            vectors = _unpack(found, packing, words.shape)
            outputs.append(vectors + outputs[-1] if is_residual else vectors)
            inputs = _pack(outputs[-1].flatten(0, 1), packing.positions)
        else:
            inputs = found + inputs if is_residual else found
            outputs.append(_unpack(inputs, packing, words.shape))
    return tuple(outputs)


@torch.no_grad()
def run_to_last(
    lstm: Lstm, distinct: Tensor, words: tuple[Tensor, Tensor], lengths: tuple[Tensor, Tensor]
) -> Tensor:
    """(B, 2 P) the top output of each direction after the last word of a row of its own.

    `words` (B, T) are what the forward and what the backward stack reads, in the order in which it
    does, and `lengths` how many of them. To know a word's two neighbourhoods, half a sentence is
    read each way, where `run_packed` reads all of it twice.
    """
    assert lstm.direction == "separate"
    dtype = _working_dtype(distinct)
    sorted_lengths = [each.sort(descending=True, stable=True) for each in lengths]
    # Rows of both stacks are paired by length; the shorter one of a pair reads on to no effect.
    steps = torch.maximum(*(each.values for each in sorted_lengths))
    is_read = torch.arange(words[0].shape[1])[:, None] < steps  # (T, B)
    step, rank = is_read.nonzero(as_tuple=True)
    positions = [each.indices[rank] * words[0].shape[1] + step for each in sorted_lengths]
    rows = [each.flatten()[where] for each, where in zip(words, positions, strict=True)]
    inputs = _pack(distinct.to(dtype), torch.stack(rows))
    batch_sizes = is_read.sum(dim=1)
    for number, weights in enumerate(lstm.weights()):
        found = choose_steps(weights, dtype).run(inputs, batch_sizes.tolist())
        inputs = found + inputs if lstm.config.residual and number > 0 else found
    begins = batch_sizes.cumsum(0) - batch_sizes
    last = inputs.new_empty(len(steps), 2, inputs.shape[-1])
    for stack, (values, order) in enumerate(sorted_lengths):
        last[order, stack] = inputs[stack, begins[values - 1] + torch.arange(len(values))]
    return last.flatten(1)


def _pack(vectors: Tensor, positions: Tensor) -> Tensor:
    """(U, D) and (S, N) -> (S, N + SLACK, D)"""
    stacks, number = positions.shape
    packed = vectors.new_zeros(stacks, number + SLACK, vectors.shape[1])
    for into, which in zip(packed, positions, strict=True):
        torch.index_select(vectors, 0, which, out=into[:number])
    return packed


def _working_dtype(vectors: Tensor) -> torch.dtype:
    kind = vectors.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else vectors.dtype


def _unpack(packed: Tensor, packing: Packing, shape: torch.Size) -> Tensor:
    """(S, N + SLACK, P) -> (B, T, S * P)"""
    stacks, _, proj_size = packed.shape
    flat = packed.new_zeros(shape.numel(), stacks, proj_size)
    for stack, positions in enumerate(packing.positions):
        flat[:, stack].index_copy_(0, positions, packed[stack, : len(positions)])
    return flat.view(*shape, stacks * proj_size)
