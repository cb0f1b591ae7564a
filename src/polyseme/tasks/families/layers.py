"""What networks of several families are made of: layers that read a sentence, and pooling.

    Context     TaskInputs -> (B, T, W)   bidirectional LSTM, with a model's layers inserted after
                                          the first layer or the last
    pool, Attention   (B, T, D) -> one vector for a sentence of any length
    LabelHead   (B, D) -> (B, K)

Dropout on the inputs is the embeddings' own; here it is on what each layer gives.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.errors import ModelError
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.embeddings.mix import ByteDropout

_TARGET_DIM = 16
LARGEST_SCORE = 1e8
"""A network in training gives scores below 100; beyond this, float32 tells no two labels apart."""


class ContextConfig(Settings):
    """Layers that read a sentence both ways."""

    num_layers: int = Field(1, ge=1, le=16)
    """How many; from the second on, each adds to what the one below gave."""
    dim: int = Field(256, ge=2, le=65_536, multiple_of=2)
    """Output dimension of a layer, half of it from each direction."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on each layer's outputs in training."""


class Context(nn.Module):
    """The layers."""

    def __init__(self, config: ContextConfig, dims: InputDims, *, has_target: bool = False) -> None:
        super().__init__()
        self.target_embedding = nn.Embedding(2, _TARGET_DIM) if has_target else None
        read = dims.input + (_TARGET_DIM if has_target else 0)
        one = LstmConfig(num_layers=1, proj_size=config.dim)
        self.layers = nn.ModuleList([Lstm(one, "joint", input_size=read)])
        read = config.dim + dims.after_first_layer
        for _ in range(1, config.num_layers):
            self.layers.append(Lstm(one, "joint", input_size=read))
            read = config.dim
        self.dropout = ByteDropout(config.dropout)
        self.dim = config.dim + dims.output
        if config.num_layers == 1:  # what is inserted after the first layer stays in the output
            self.dim += dims.after_first_layer

    def forward(self, inputs: TaskInputs, target_index: Tensor | None = None) -> Tensor:
        """`target_index` (B,): the word the task is about, -1 for none."""
        lengths = inputs.mask.sum(dim=1)
        vectors = inputs.input
        if self.target_embedding is not None:
            is_target = _is_target(inputs.mask, target_index)
            vectors = torch.cat([vectors, self.target_embedding(is_target)], dim=-1)
        for number, layer in enumerate(self.layers):
            [found] = layer(vectors, lengths)
            found = self.dropout(found)
            vectors = found if number == 0 else found + vectors[..., : found.shape[-1]]
            if number == 0 and inputs.after_first_layer is not None:
                vectors = torch.cat([vectors, inputs.after_first_layer], dim=-1)
        if inputs.output is not None:
            vectors = torch.cat([vectors, inputs.output], dim=-1)
        return vectors


def _is_target(mask: Tensor, target_index: Tensor | None) -> Tensor:
    """(B, T) 1 at the target word, 0 at all others."""
    if target_index is None:
        return torch.zeros_like(mask, dtype=torch.int64)
    place = torch.arange(mask.shape[1], device=mask.device)
    return (place == target_index[:, None]).long()


def select_rows(inputs: TaskInputs, rows: slice) -> TaskInputs:
    """Some rows of the inputs, without padding that none of them needs."""
    mask = inputs.mask[rows]
    longest = int(mask.sum(dim=1).max())

    def selected(vectors: Tensor | None) -> Tensor | None:
        return None if vectors is None else vectors[rows, :longest]

    own = inputs.input[rows, :longest]
    after, output = selected(inputs.after_first_layer), selected(inputs.output)
    return TaskInputs(own, mask[:, :longest], after, output)


def number_in_example(owner: Tensor) -> Tensor:
    """(S,) -> (S,): how many rows of the same example stand before each."""
    return (owner[:, None] == owner[None, :]).tril().sum(dim=1) - 1


def pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), (B, T) -> (B, 2 D): the largest of each number, and the mean."""
    lengths = mask.sum(dim=1, keepdim=True)
    largest = vectors.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
    mean = (vectors * mask[..., None]).sum(dim=1) / lengths
    return torch.cat([largest, mean], dim=-1)


class Attention(nn.Module):
    """The words that matter most, weighted by a learned query."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, dim)
        self.query = nn.Linear(dim, 1, bias=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), (B, T) -> (B, D)"""
        asked: Tensor = self.query(self.hidden(vectors).tanh())[..., 0]
        weights = asked.masked_fill(~mask, -torch.inf).softmax(dim=1)  # (B, T)
        return (weights[..., None] * vectors * mask[..., None]).sum(dim=1)


class LabelHead(nn.Module):
    """From one vector to a score for each label, through a hidden layer."""

    def __init__(self, read: int, hidden: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(read, hidden)
        self.out = nn.Linear(hidden, labels)
        self.dropout = ByteDropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, D) -> (B, K)"""
        hidden = self.hidden(self.dropout(vectors)).relu()
        scores: Tensor = self.out(self.dropout(hidden))
        return scores


def check_finite(scores: Tensor) -> None:
    """Refuse scores of weights that are damaged: the best of what are no numbers would be a finding
    like any other."""
    if not scores.isfinite().all() or scores.abs().amax() > LARGEST_SCORE:
        raise ModelError(
            "The task's scores are not finite numbers, or larger than any that training gives "
            f"({LARGEST_SCORE:g}): no label can be told from them. Its weights are damaged; copy "
            "the whole folder again from where it came, or train again."
        )
