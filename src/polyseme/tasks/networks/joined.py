"""One label for rows of joined sentences, `<S> a </S> b </S>`, as GPT and BERT are fine-tuned.

    in   Fed of rows in which every place counts, marks included
    out  scores (B, K)

All the reading is the model's; here is only a linear layer on the vector of one mark.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.tasks.networks.pooling import OneLabel
from polyseme.transfer.dropout import ByteDropout
from polyseme.transfer.fed import Fed, Widths


class JoinedConfig(Settings):
    """A text or two, joined with marks and read by a fine-tuned model alone."""

    kind: Literal["joined"] = "joined"
    takes: Literal["start", "end"] = "end"
    """Whose vector counts: that of the mark at the end, which has read everything (GPT), or at the
    start, for a model that sees both sides (BERT)."""
    both_orders: bool = False
    """Whether two sentences are read in both orders and the vectors added: for likeness, which has
    no order."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the vector in training."""


class JoinedReader(OneLabel):
    """A linear layer on one mark's vector."""

    def __init__(self, config: JoinedConfig, widths: Widths, labels: int) -> None:
        super().__init__()
        self.config = config
        self.dropout = ByteDropout(config.dropout)
        self.out = nn.Linear(widths.first, labels)

    def scores(self, fed: Fed, _marked: Tensor) -> Tensor:
        """(B, K)"""
        rows = torch.arange(len(fed.mask), device=fed.mask.device)
        ends = fed.mask.sum(dim=1) - 1
        places = ends if self.config.takes == "end" else torch.zeros_like(ends)
        taken = fed.first[rows, places]
        if self.config.both_orders:
            there, back = taken.chunk(2)
            taken = there + back
        scores: Tensor = self.out(self.dropout(taken))
        return scores
