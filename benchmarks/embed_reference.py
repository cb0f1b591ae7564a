"""The published ELMo as its reference implementation runs it, to be measured against.

Written anew after AllenNLP 0.9 (Apache-2.0): every occurrence of a word goes through its
characters' filters at full width, each direction and layer is a loop over time with two small
multiplications a step, sentences come in the order of the corpus, and the state is carried from
batch to batch unless told otherwise.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn import functional

from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.characters import CharacterEncoder
from polyseme.encoders.encoder import Encoder
from polyseme.encoders.lstm import Lstm
from polyseme.encoders.recurrence import LayerWeights

State = tuple[Tensor, Tensor]


class Reference:
    """Sentences in, every layer out; the weights are those of one of our encoders."""

    def __init__(self, encoder: Encoder, vocabulary: Vocabulary) -> None:
        assert encoder.inputs.characters is not None
        assert isinstance(encoder.contextualizer, Lstm)
        self.vocabulary = vocabulary
        self.characters: CharacterEncoder = encoder.inputs.characters
        weights = encoder.contextualizer.weights()
        self.stacks = [[_Layer(each, stack) for each in weights] for stack in range(2)]
        self.states: list[list[State | None]] = [[None] * len(weights) for _ in range(2)]

    @torch.no_grad()
    def __call__(self, sentences: Sequence[Sequence[str]], *, carry: bool = True) -> Tensor:
        """(L, B, T, 2 * D), BOS and EOS with it; what lies after a sentence is zero."""
        order = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
        lengths = [len(sentences[row]) + 2 for row in order]
        char_ids = self._char_ids([sentences[row] for row in order], lengths[0])
        rows, steps, characters = char_ids.shape
        words = self._encode(char_ids.view(-1, characters)).view(rows, steps, -1)
        words[torch.arange(steps) >= torch.tensor(lengths)[:, None]] = 0
        halves = []
        for stack, layers in enumerate(self.stacks):
            below, given = words, [words]
            for number, layer in enumerate(layers):
                state = self.states[stack][number] if carry else None
                above, after = layer.run(below, lengths, state, is_forward=stack == 0)
                self.states[stack][number] = after if carry else None
                below = above + below if number else above
                given.append(below)
            halves.append(torch.stack(given))
        back = torch.empty(rows, dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(rows)
        return torch.cat(halves, dim=-1)[:, back]

    def _char_ids(self, sentences: Sequence[Sequence[str]], longest: int) -> Tensor:
        """(B, T, C) the character ids of every occurrence."""
        tokens = self.vocabulary.special_token_chars
        table = np.zeros((len(sentences), longest, tokens.shape[1]), np.int64)
        for row, sentence in enumerate(sentences):
            end = len(sentence) + 1
            table[row, 0], table[row, end] = tokens[1], tokens[2]
            table[row, 1:end] = self.vocabulary.char_ids_of(pa.array(sentence, pa.string()))
        return torch.from_numpy(table)

    def _encode(self, char_ids: Tensor) -> Tensor:
        """(N, C) -> (N, D), every word for itself."""
        table = functional.pad(self.characters.char_embedding.weight, (0, 0, 1, 0))
        letters = functional.embedding(char_ids, table).transpose(1, 2)
        peaks = [filters(letters).max(dim=-1)[0] for filters in self.characters.filters]
        features = torch.cat([self.characters.activation(peak) for peak in peaks], dim=-1)
        for highway in self.characters.highways:
            linear: nn.Module = highway.get_submodule("linear")
            changed, gate = linear(features).chunk(2, dim=-1)
            gate = torch.sigmoid(gate)
            features = gate * features + (1 - gate) * functional.relu(changed)
        projection = self.characters.projection
        return features if projection is None else projection(features)


class _Layer:
    """One layer and direction: a loop over time."""

    def __init__(self, weights: LayerWeights, stack: int) -> None:
        assert weights.weight_hr is not None
        self.clips = weights.clips
        self.input = _linear(weights.weight_ih[stack], None)
        self.state = _linear(weights.weight_hh[stack], weights.bias[stack])
        self.projection = _linear(weights.weight_hr[stack], None)

    def run(
        self, inputs: Tensor, lengths: list[int], state: State | None, *, is_forward: bool
    ) -> tuple[Tensor, State]:
        """(B, T, D) -> (B, T, D), the longest sentence first."""
        rows, steps, _ = inputs.shape
        hidden_size, proj_size = self.projection.in_features, self.projection.out_features
        hidden_of_all, cell_of_all = (
            inputs.new_zeros(rows, proj_size),
            inputs.new_zeros(rows, hidden_size),
        )
        if state is not None:
            known = min(rows, len(state[0]))
            hidden_of_all[:known], cell_of_all[:known] = state[0][:known], state[1][:known]
        outputs = inputs.new_zeros(rows, steps, proj_size)
        for position in range(steps) if is_forward else reversed(range(steps)):
            number = sum(length > position for length in lengths)
            hidden, cell = hidden_of_all[:number].clone(), cell_of_all[:number].clone()
            read, kept = self.input(inputs[:number, position]), self.state(hidden)
            input_gate, forget_gate, output_gate, candidate = (
                a + b for a, b in zip(read.chunk(4, -1), kept.chunk(4, -1), strict=True)
            )
            cell = (
                torch.sigmoid(input_gate) * torch.tanh(candidate)
                + torch.sigmoid(forget_gate) * cell
            )
            cell = _clip(cell, self.clips.cell)
            hidden = self.projection(torch.sigmoid(output_gate) * torch.tanh(cell))
            hidden = _clip(hidden, self.clips.output)
            hidden_of_all, cell_of_all = hidden_of_all.clone(), cell_of_all.clone()
            hidden_of_all[:number], cell_of_all[:number] = hidden, cell
            outputs[:number, position] = hidden
        return outputs, (hidden_of_all, cell_of_all)


def _clip(values: Tensor, bound: float | None) -> Tensor:
    return values if bound is None else values.clamp(-bound, bound)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    linear = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None)
    with torch.no_grad():
        linear.weight.copy_(weight.t())
        if bias is not None:
            linear.bias.copy_(bias)
    return linear
