"""Layers of LSTM cells, each output projected back to the layer's width.

    in   vectors   (B, T, D)        layer 0, and the length of each sentence
    out  L times   (B, T, D)        one for each layer; forward half first when apart

As published by Peters et al. (2018): projection, clipped cell and output, and from the second layer
on each layer's input added to its output.
"""

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.encoders import exact as exactly
from polyseme.encoders.directions import Direction, reverse_sequences
from polyseme.encoders.recurrence import Clips, LayerWeights, State, recur

_FORGET_BIAS = 1.0


class LstmConfig(Settings):
    """Layers of LSTM cells, each output projected back to `width`."""

    kind: Literal["lstm"] = "lstm"
    layers: int = Field(2, ge=1, le=256)
    """How many layers have context; layer 0, the word itself, is not counted."""
    width: int = Field(512, ge=1, le=65_536)
    """Output dimension of one direction (of both when directions are 'together')."""
    cells: int | None = Field(None, ge=1, le=262_144)
    """Memory cells in each layer and direction; without it as many as outputs, not projected."""
    cell_clip: float | None = Field(None, gt=0)
    """Largest value in a cell, either sign; without it there is no limit."""
    output_clip: float | None = Field(None, gt=0)
    """Largest value in an output, either sign; without it there is no limit."""
    residual: bool = True
    """Whether each layer's input is added to its output, from the second layer on."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on each layer's inputs and on the last outputs in training."""


class Lstm(nn.Module):
    """The layers with context. Directions are stacks computed side by side."""

    def __init__(
        self, config: LstmConfig, direction: Direction, *, read: int | None = None
    ) -> None:
        """`read`: dimension of what the first layer reads, if not as many as it gives."""
        super().__init__()
        self.config = config
        self.direction = direction
        stacks = 1 if direction == "forward" else 2
        # Together, each way gives half the width, and the next layer reads both halves.
        width = config.width // 2 if direction == "together" else config.width
        self.layers = nn.ModuleList(
            _Layer(
                config, stacks=stacks, read=read if read and not n else config.width, width=width
            )
            for n in range(config.layers)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, vectors: Tensor, lengths: Tensor, *, exact: bool = False
    ) -> tuple[Tensor, ...]:
        """(B, T, D) -> L times (B, T, D), from a state of zeros."""
        outputs, _ = self.run(vectors, lengths, None, exact=exact)
        return outputs

    def run(
        self, vectors: Tensor, lengths: Tensor, states: list[State] | None, *, exact: bool = False
    ) -> tuple[tuple[Tensor, ...], list[State]]:
        """As `forward`, from these states (one for each layer) and with the states after."""
        match self.direction:
            case "forward":
                inputs = vectors.transpose(0, 1)[None]  # (1, T, B, D)
            case "apart":
                both = torch.stack([vectors, reverse_sequences(vectors, lengths)])
                inputs = both.transpose(1, 2)  # (2, T, B, D)
            case "together":
                return self._run_together(vectors, lengths, states, exact=exact)
        outputs, after = [], []
        for number, layer in enumerate(self.layers):
            state = states[number] if states else None
            outcome, state = layer(self.dropout(inputs), state, exact=exact)
            inputs = outcome + inputs if self._is_residual(number) else outcome
            outputs.append(self._words_first(inputs, lengths))
            after.append(state)
        outputs[-1] = self.dropout(outputs[-1])
        return tuple(outputs), after

    def weights(self) -> list[LayerWeights]:
        """Those of each layer."""
        return [layer.weights() for layer in self.layers if isinstance(layer, _Layer)]

    def _is_residual(self, number: int) -> bool:
        return self.config.residual and number > 0

    def _words_first(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """(S, T, B, D) -> (B, T, S * D), the backward stack turned to stand at its words again."""
        rows = inputs.transpose(1, 2)
        if self.direction == "forward":
            return rows[0]
        return torch.cat([rows[0], reverse_sequences(rows[1], lengths)], dim=-1)

    def _run_together(
        self, vectors: Tensor, lengths: Tensor, states: list[State] | None, *, exact: bool
    ) -> tuple[tuple[Tensor, ...], list[State]]:
        outputs, after = [], []
        for number, layer in enumerate(self.layers):
            read = self.dropout(vectors)
            inputs = torch.stack([read, reverse_sequences(read, lengths)]).transpose(1, 2)
            outcome, state = layer(inputs, states[number] if states else None, exact=exact)
            outcome = self._words_first(outcome, lengths)
            vectors = outcome + vectors if self._is_residual(number) else outcome
            outputs.append(vectors)
            after.append(state)
        outputs[-1] = self.dropout(outputs[-1])
        return tuple(outputs), after


class _Layer(nn.Module):
    """One layer of one or two stacks that share nothing but the clock."""

    def __init__(self, config: LstmConfig, *, stacks: int, read: int, width: int) -> None:
        super().__init__()
        cells = config.cells or width
        self.clips = Clips(config.cell_clip, config.output_clip)
        self.input_weight = nn.Parameter(torch.empty(stacks, read, 4 * cells))
        self.state_weight = nn.Parameter(torch.empty(stacks, width, 4 * cells))
        self.bias = nn.Parameter(torch.zeros(stacks, 4 * cells))
        self.projection = nn.Parameter(torch.empty(stacks, cells, width)) if config.cells else None
        for weight in (self.input_weight, self.state_weight, self.projection):
            if weight is not None:
                nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[1]))
        with torch.no_grad():
            # Gates: input, forget, output, candidate.
            self.bias[:, cells : 2 * cells] = _FORGET_BIAS

    def forward(
        self, inputs: Tensor, state: State | None, *, exact: bool = False
    ) -> tuple[Tensor, State]:
        """(S, T, B, D) -> (S, T, B, W) and the state after the last step, padding included."""
        stacks, steps, rows, read = inputs.shape
        cells, width = self.bias.shape[-1] // 4, self.state_weight.shape[1]
        if state is None:
            zeros = self.bias.new_zeros
            state = State(zeros(stacks, rows, width), zeros(stacks, rows, cells))
        if exact:
            return exactly.recur(inputs, self.weights(), state)
        flat = inputs.reshape(stacks, steps * rows, read)
        gate_inputs = torch.bmm(flat, self.input_weight).view(stacks, steps, rows, 4 * cells)
        return recur(
            gate_inputs,
            self.bias,
            self.state_weight,
            projection=self.projection,
            state=state,
            clips=self.clips,
        )

    def weights(self) -> LayerWeights:
        """What was learnt, as a value."""
        return LayerWeights(
            self.input_weight, self.state_weight, self.bias, self.projection, self.clips
        )
