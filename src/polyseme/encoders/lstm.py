"""Layers of LSTM cells, each output projected back to `proj_size`.

    in   vectors   (B, T, D)        layer 0, and the length of each sentence
    out  L times   (B, T, D)        one for each layer; forward half first when separate

As published by Peters et al. (2018): projection, clipped cell and output, and from the second layer
on each layer's input added to its output. Sizes and weights are named as in `nn.LSTM`, but weights
are transposed, and gates are ordered input, forget, output, candidate.

When no gradient is needed, sentences are packed, the longest first, so that a step works only on
those that still have a word. Where special tokens are of no interest, the first is read once for
all sentences and the last not at all. The result is the same but for rounding.
"""

import math
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.encoders.cell import Clips, LayerWeights, State, recur
from polyseme.encoders.encoded import Direction, reverse_sequences
from polyseme.encoders.steps import SLACK, FewRows, choose_steps

_FORGET_BIAS = 1.0


class LstmConfig(Settings):
    """Layers of LSTM cells, each output projected back to `proj_size`."""

    kind: Literal["lstm"] = "lstm"
    num_layers: int = Field(2, ge=1, le=256)
    """Number of layers with context, not counting layer 0, the word itself."""
    proj_size: int = Field(512, ge=1, le=65_536)
    """Output dimension of one direction (of both when the direction is 'joint')."""
    hidden_size: int | None = Field(None, ge=1, le=262_144)
    """LSTM cells per layer and direction; by default `proj_size`, without a projection."""
    cell_clip: float | None = Field(None, gt=0)
    """Clip cell states to this absolute value; by default no clipping."""
    output_clip: float | None = Field(None, gt=0)
    """Clip outputs to this absolute value; by default no clipping."""
    residual: bool = True
    """Whether each layer's input is added to its output, from the second layer on."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on each layer's inputs and on the last outputs in training."""
    max_length: ClassVar[None] = None
    """A sentence may have any length."""

    @property
    def dim(self) -> int:
        """Output dimension, as every contextualizer has it."""
        return self.proj_size


class Lstm(nn.Module):
    """The layers with context. Directions are stacks computed side by side."""

    def __init__(
        self, config: LstmConfig, direction: Direction, *, input_size: int | None = None
    ) -> None:
        """`input_size`: what the first layer reads, if not `proj_size`."""
        super().__init__()
        self.config = config
        self.direction = direction
        stacks = 1 if direction == "forward" else 2
        # When joint, each way gives half of the output, and the next layer reads both halves.
        proj_size = config.proj_size // 2 if direction == "joint" else config.proj_size
        sizes = [input_size or config.proj_size, *[config.proj_size] * (config.num_layers - 1)]
        self.layers = nn.ModuleList(
            _Layer(config, stacks=stacks, input_size=size, proj_size=proj_size) for size in sizes
        )
        self.dropout = nn.Dropout(config.dropout)

    def layer_of(self, parameter: str) -> int:
        """The layer with context, from 1, that a parameter belongs to, by its name in here."""
        return 1 + int(parameter.split(".")[1])  # layers.0.bias

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """(B, T, D) -> L times (B, T, D), from a state of zeros."""
        outputs, _ = self.run(vectors, lengths, None)
        return outputs

    def run(
        self, vectors: Tensor, lengths: Tensor, states: list[State] | None
    ) -> tuple[tuple[Tensor, ...], list[State]]:
        """As `forward`, from these states (one for each layer) and with the states after."""
        match self.direction:
            case "forward":
                inputs = vectors.transpose(0, 1)[None]  # (1, T, B, D)
            case "separate":
                both = torch.stack([vectors, reverse_sequences(vectors, lengths)])
                inputs = both.transpose(1, 2)  # (2, T, B, D)
            case "joint":
                return self._run_joint(vectors, lengths, states)
        outputs, after = [], []
        for number, layer in enumerate(self.layers):
            state = states[number] if states else None
            outcome, state = layer(self.dropout(inputs), state)
            inputs = outcome + inputs if self._is_residual(number) else outcome
            outputs.append(self._words_first(inputs, lengths))
            after.append(state)
        outputs[-1] = self.dropout(outputs[-1])
        return tuple(outputs), after

    def all_layers(self) -> list["_Layer"]:
        """Those with context, the lowest first."""
        return [layer for layer in self.layers if isinstance(layer, _Layer)]

    def _is_residual(self, number: int) -> bool:
        return self.config.residual and number > 0

    def _words_first(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """(S, T, B, D) -> (B, T, S * D), the backward stack's words in order again."""
        rows = inputs.transpose(1, 2)
        if self.direction == "forward":
            return rows[0]
        return torch.cat([rows[0], reverse_sequences(rows[1], lengths)], dim=-1)

    def _run_joint(
        self, vectors: Tensor, lengths: Tensor, states: list[State] | None
    ) -> tuple[tuple[Tensor, ...], list[State]]:
        outputs, after = [], []
        for number, layer in enumerate(self.layers):
            dropped = self.dropout(vectors)
            both = torch.stack([dropped, reverse_sequences(dropped, lengths)])
            outcome, state = layer(both.transpose(1, 2), states[number] if states else None)
            outcome = self._words_first(outcome, lengths)
            vectors = outcome + vectors if self._is_residual(number) else outcome
            outputs.append(vectors)
            after.append(state)
        outputs[-1] = self.dropout(outputs[-1])
        return tuple(outputs), after


class _Layer(nn.Module):
    """One layer of one or two stacks, which share no weights and are computed in the same steps."""

    def __init__(self, config: LstmConfig, *, stacks: int, input_size: int, proj_size: int) -> None:
        super().__init__()
        hidden_size = config.hidden_size or proj_size
        self.clips = Clips(config.cell_clip, config.output_clip)
        self._few_rows = FewRows()
        self.weight_ih = nn.Parameter(torch.empty(stacks, input_size, 4 * hidden_size))
        self.weight_hh = nn.Parameter(torch.empty(stacks, proj_size, 4 * hidden_size))
        self.bias = nn.Parameter(torch.zeros(stacks, 4 * hidden_size))
        self.weight_hr = (
            nn.Parameter(torch.empty(stacks, hidden_size, proj_size))
            if config.hidden_size
            else None
        )
        for weight in (self.weight_ih, self.weight_hh, self.weight_hr):
            if weight is not None:
                nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[1]))
        with torch.no_grad():
            # Gates: input, forget, output, candidate.
            self.bias[:, hidden_size : 2 * hidden_size] = _FORGET_BIAS

    def forward(self, inputs: Tensor, state: State | None) -> tuple[Tensor, State]:
        """(S, T, B, D) -> (S, T, B, P) and the state after the last step, padding included."""
        stacks, steps, rows, input_size = inputs.shape
        hidden_size, proj_size = self.bias.shape[-1] // 4, self.weight_hh.shape[1]
        if state is None:
            zeros = self.bias.new_zeros
            state = State(zeros(stacks, rows, proj_size), zeros(stacks, rows, hidden_size))
        flat = inputs.reshape(stacks, steps * rows, input_size)
        gate_inputs = torch.bmm(flat, self.weight_ih)
        weights, batch_sizes = self.weights(), [rows] * steps
        if self._few_rows.can_run(weights, gate_inputs.dtype, batch_sizes):
            outputs, cells = self._few_rows.run(gate_inputs, batch_sizes, weights, state)
            return outputs.view(stacks, steps, rows, -1), State(outputs[:, -rows:], cells)
        return recur(
            gate_inputs.view(stacks, steps, rows, 4 * hidden_size),
            self.bias,
            self.weight_hh,
            weight_hr=self.weight_hr,
            state=state,
            clips=self.clips,
        )

    @torch.no_grad()
    def run_packed(self, inputs: Tensor, batch_sizes: list[int]) -> Tensor:
        """(S, N + SLACK, D), packed step after step, to (S, N + SLACK, P): see `Steps`."""
        weights = self.weights()
        if self._few_rows.can_run(weights, inputs.dtype, batch_sizes):
            gate_inputs = torch.bmm(inputs, self.weight_ih)
            return self._few_rows.run(gate_inputs, batch_sizes, weights)[0]
        return choose_steps(weights, inputs.dtype).run(inputs, batch_sizes)

    def weights(self) -> LayerWeights:
        """What was learnt, as a value."""
        return LayerWeights(self.weight_ih, self.weight_hh, self.bias, self.weight_hr, self.clips)


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
    for number, layer in enumerate(lstm.all_layers()):
        found = layer.run_packed(inputs, packing.batch_sizes)
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
    for number, layer in enumerate(lstm.all_layers()):
        found = layer.run_packed(inputs, batch_sizes.tolist())
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
