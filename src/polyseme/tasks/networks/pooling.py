"""One vector for a sentence of any length, and labels from it."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from polyseme.transfer.dropout import ByteDropout


def pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), (B, T) -> (B, 2 D): the largest of each number, and the mean."""
    lengths = mask.sum(dim=1, keepdim=True)
    largest = vectors.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
    mean = (vectors * mask[..., None]).sum(dim=1) / lengths
    return torch.cat([largest, mean], dim=-1)


class Attention(nn.Module):
    """The words that matter most, weighted by a learned question."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.question = nn.Linear(width, 1, bias=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), (B, T) -> (B, D)"""
        asked: Tensor = self.question(self.hidden(vectors).tanh())[..., 0]
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


class OneLabel(nn.Module):
    """What networks that give one label to each example share."""

    def losses(self, scores: Tensor, answers: Tensor, _mask: Tensor) -> Tensor:
        """(B, K), (B,) -> (B,)"""
        return functional.cross_entropy(scores.float(), answers, reduction="none")

    def best(self, scores: Tensor, _mask: Tensor) -> Tensor:
        """(B, K) -> (B,)"""
        return scores.argmax(dim=-1)
