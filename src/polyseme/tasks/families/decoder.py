"""The network of sequence to sequence: reads a text, writes another, word by word.

    in   the words of the source, (B, T, D)
    then an LSTM over what is written so far; at each word it attends to the source (Luong et al.
         2015), and either writes a word of its vocabulary or copies one of the source
         (pointer-generator, See et al. 2017): a gate weighs the two
    out  losses of the words that should be written; or the words that are, by beam search

Words have numbers: 0 is no word, 1 the end, 2 a word that is not in the vocabulary; words of the
source that are not in it have numbers after the last, for each example its own.
"""

from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.tasks.embeddings.dropout import ByteDropout
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.families.beam_search import BeamConfig, State, beam_search
from polyseme.tasks.families.family import Network, TaskBatch
from polyseme.tasks.families.layers import Context, ContextConfig, check_finite, pool

END, UNKNOWN, FIRST_WORD = 1, 2, 3
_SMALLEST = 1e-30  # of a probability whose logarithm is taken


class DecoderConfig(Settings):
    """How a text is written."""

    dim: int = Field(256, ge=2, le=8_192)
    """Dimension of the LSTM and of the vectors of words that are written."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on words and outputs in training."""
    copies: bool = True
    """Whether words of the source can be copied, those that training has never seen too."""
    max_length: int = Field(128, ge=1, le=4_096)
    """Words that are written at most, the end counted; training cuts longer targets there."""
    beam: int = Field(4, ge=1, le=256)
    """Sequences that are followed at once; 1 is greedy, and quickest."""
    length_penalty: float = Field(1.0, ge=0, le=4)
    """Sequences are compared by log p / length to this power: 0 prefers short ones."""


class Source(NamedTuple):
    """What was read."""

    vectors: Tensor  # (B, T, D)
    mask: Tensor  # (B, T)
    words: Tensor  # (B, T)
    """By number."""

    def select(self, rows: Tensor) -> "Source":
        """Those of some examples; an example may be there several times."""
        return Source(*(part[rows] for part in self))


class Output(NamedTuple):
    """What is known at each of U words that are to be written."""

    log_probs: Tensor  # (B, U, V)
    """Of words of the vocabulary, if one of them is written."""
    attention: Tensor  # (B, U, T)
    """Of words of the source, if one of them is copied."""
    gate: Tensor  # (B, U)
    """The probability that one is copied."""


class AttentionDecoder(Network):
    """Layers that read, an LSTM that writes."""

    def __init__(
        self, context: ContextConfig, config: DecoderConfig, dims: InputDims, num_words: int
    ) -> None:
        """`num_words`: how many numbers words of the vocabulary have."""
        super().__init__()
        self.config, self.num_words = config, num_words
        self.context = Context(context, dims)
        read, dim = self.context.dim, config.dim
        self.start = nn.Linear(2 * read, 2 * dim)
        self.embedding = nn.Embedding(num_words, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)  # it is also the output layer
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.query = nn.Linear(dim, read, bias=False)
        self.combine = nn.Linear(dim + read, dim)
        self.bias = nn.Parameter(torch.zeros(num_words))
        self.copy = nn.Linear(2 * dim + read, 1) if config.copies else None
        self.dropout = ByteDropout(config.dropout)

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B,): -log p of the target's words, the mean over them, each after the right ones."""
        source, state = self._read(inputs, batch)
        target = batch["target"]  # (B, U)
        is_word = target > 0
        before = torch.cat([torch.full_like(target[:, :1], END), target[:, :-1]], dim=1)
        output, _ = self._write(source, state, before)
        losses = -self._log_prob_of(output, source, target) * is_word
        return losses.sum(dim=1) / is_word.sum(dim=1)

    @torch.no_grad()
    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[list[int]]:
        """The words of each text, by number."""
        source, start = self._read(inputs, batch)
        num_numbers = max(self.num_words, int(source.words.max()) + 1)
        row = torch.arange(len(batch), device=source.words.device)

        def step(state: State, words: Tensor) -> tuple[Tensor, State]:
            rows, hidden, cell = state
            own = source.select(rows)
            output, (hidden, cell) = self._write(own, (hidden, cell), words[:, None])
            check_finite(output.log_probs[:, 0, END:])
            log_probs = all_log_probs(output, own.words, num_numbers)[:, 0]
            log_probs[:, :END] = log_probs[:, UNKNOWN] = -torch.inf
            return log_probs, (rows, hidden, cell)

        own = self.config
        beam = BeamConfig(own.beam, own.max_length, own.length_penalty)
        return beam_search(step, (row, *start), num_examples=len(batch), end=END, config=beam)

    def _read(self, inputs: TaskInputs, batch: TaskBatch) -> tuple[Source, tuple[Tensor, Tensor]]:
        """What is read, and the state (B, H) from which is written."""
        vectors = self.context(inputs)
        hidden, cell = self.start(pool(vectors, inputs.mask)).tanh().chunk(2, dim=-1)
        vectors = vectors * inputs.mask[..., None]
        return Source(vectors, inputs.mask, batch["source"]), (hidden, cell)

    def _write(
        self, source: Source, state: tuple[Tensor, Tensor], before: Tensor
    ) -> tuple[Output, tuple[Tensor, Tensor]]:
        """`before` (B, U): the word before each that is to be written."""
        known = torch.where(before < self.num_words, before, UNKNOWN)
        embedded = self.dropout(self.embedding(known))
        first = (state[0][None].contiguous(), state[1][None].contiguous())
        hidden, (last, cell) = self.lstm(embedded, first)
        asked = self.query(hidden) @ source.vectors.transpose(1, 2)  # (B, U, T)
        attention = asked.masked_fill(~source.mask[:, None], -torch.inf).softmax(dim=-1)
        found = attention @ source.vectors
        written = self.dropout(self.combine(torch.cat([hidden, found], dim=-1)).tanh())
        scores = written @ self.embedding.weight.T + self.bias
        # No word has number 0; a large negative number, since infinity is for damaged weights.
        scores = scores.index_fill(2, scores.new_zeros(1).long(), -1e4)
        if self.copy is None:
            gate = attention.new_zeros(attention.shape[:2])
        else:
            gate = self.copy(torch.cat([hidden, found, embedded], dim=-1)).sigmoid()[..., 0]
        return Output(scores.float().log_softmax(dim=-1), attention, gate), (last[0], cell[0])

    def _log_prob_of(self, output: Output, source: Source, target: Tensor) -> Tensor:
        """(B, U): of the right word, written or copied."""
        known = torch.where(target < self.num_words, target, 0)
        own = output.log_probs.gather(2, known[..., None])[..., 0].exp()
        is_right = source.words[:, None] == target[..., None]  # (B, U, T)
        copied = (output.attention * is_right).sum(dim=-1)
        gate = output.gate
        return ((1 - gate) * own + gate * copied).clamp_min(_SMALLEST).log()


def all_log_probs(output: Output, source: Tensor, num_numbers: int) -> Tensor:
    """(B, U, W): of every number, those of words of the source included; -inf for none."""
    probs = output.log_probs.exp() * (1 - output.gate[..., None])
    whole = probs.new_zeros((*probs.shape[:2], num_numbers))
    whole[..., : probs.shape[-1]] = probs
    place = source[:, None].expand_as(output.attention)
    whole.scatter_add_(2, place, output.attention * output.gate[..., None])
    return whole.log()
