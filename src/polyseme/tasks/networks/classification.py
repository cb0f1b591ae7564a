"""One label for a text: layers with context, pooled in three ways, then a hidden layer.

in   Fed, and the place of a marked word where the label is about one (its sense)
out  scores (B, K)
"""

from typing import Literal

import torch
from torch import Tensor

from polyseme.config import Settings
from polyseme.tasks.networks.context import Context, ContextConfig
from polyseme.tasks.networks.pooling import Attention, LabelHead, OneLabel, pool
from polyseme.transfer.fed import Fed, Widths


class ClassificationConfig(Settings):
    """A label for a whole text: opinion, topic, kind of question."""

    kind: Literal["classification"] = "classification"
    is_marked: bool = False
    """Whether the label is about one word of the text."""
    context: ContextConfig = ContextConfig()
    """Layers that read the text."""


class Classifier(OneLabel):
    """The largest, the mean, and what attention finds, side by side."""

    def __init__(self, config: ClassificationConfig, widths: Widths, labels: int) -> None:
        super().__init__()
        self.context = Context(config.context, widths, is_marked=config.is_marked)
        width = self.context.width
        self.attention = Attention(width)
        self.head = LabelHead(3 * width, config.context.width, labels, config.context.dropout)

    def scores(self, fed: Fed, marked: Tensor) -> Tensor:
        """(B, K)"""
        vectors = self.context(fed, marked)
        pooled = [pool(vectors, fed.mask), self.attention(vectors, fed.mask)]
        found: Tensor = self.head(torch.cat(pooled, dim=-1))
        return found
