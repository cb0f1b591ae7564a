"""One label for two sentences, each read in the light of the other (ESIM, Chen et al. 2017).

    in   Fed of 2 B sentences: all first ones, then all second ones
    out  scores (B, K)

Each word looks for what answers it in the other sentence; the word, what it found, their difference
and their product are read once more, and pooled.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.tasks.networks.context import Context, ContextConfig
from polyseme.tasks.networks.pooling import LabelHead, OneLabel, pool
from polyseme.transfer.dropout import ByteDropout
from polyseme.transfer.fed import Fed, Widths


class PairsConfig(Settings):
    """How two sentences stand to each other: entailment, paraphrase, question and answer."""

    kind: Literal["pairs"] = "pairs"
    context: ContextConfig = ContextConfig()
    """Layers that read each sentence; one more of the same width reads what was compared."""


class PairReader(OneLabel):
    """Attends and compares."""

    def __init__(self, config: PairsConfig, widths: Widths, labels: int) -> None:
        super().__init__()
        width, share = config.context.width, config.context.dropout
        self.context = Context(config.context, widths)
        self.compare = nn.Linear(4 * self.context.width, width)
        self.compose = Lstm(LstmConfig(layers=1, width=width), "together")
        self.dropout = ByteDropout(share)
        self.head = LabelHead(4 * width, width, labels, share)

    def scores(self, fed: Fed, _marked: Tensor) -> Tensor:
        """(B, K)"""
        vectors, mask = self.context(fed), fed.mask
        found = attend(vectors, mask)
        both = torch.cat([vectors, found, vectors - found, vectors * found], dim=-1)
        compared = self.dropout(self.compare(both).relu()) * mask[..., None]
        [composed] = self.compose(compared, mask.sum(dim=1))
        first, second = pool(self.dropout(composed), mask).chunk(2)
        scores: Tensor = self.head(torch.cat([first, second], dim=-1))
        return scores


def attend(vectors: Tensor, mask: Tensor) -> Tensor:
    """(2 B, T, D), (2 B, T) -> (2 B, T, D): for each word the mean of the other sentence's words,
    weighted by how well they go with it. Padding is never found."""
    other = torch.cat(vectors.chunk(2)[::-1])
    is_there = torch.cat(mask.chunk(2)[::-1])
    likeness = torch.bmm(vectors, other.transpose(1, 2))  # (2 B, T, T)
    weights = likeness.masked_fill(~is_there[:, None, :], -torch.inf).softmax(dim=-1)
    return torch.bmm(weights, other * is_there[..., None])
