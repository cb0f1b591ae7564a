"""Dropout that draws one random byte for each number.

On a processor torch draws a whole random word for each, one after the other, which takes longer
than all else between a cache and a task. Shares are multiples of 1/256.
"""

import torch
from torch import Tensor, nn

_LEVELS = 256  # values of a byte
_BYTES = 8  # in what is drawn at once


class ByteDropout(nn.Module):
    """Leaves out a share of the numbers in training, and makes the others larger in return."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.out = round(share * _LEVELS)  # of so many values of a byte

    def forward(self, vectors: Tensor) -> Tensor:
        """Any shape. Chance is torch's, so that a seed repeats it."""
        if not (self.training and self.out):
            return vectors
        drawn = torch.empty(-(-vectors.numel() // _BYTES), dtype=torch.int64, device=vectors.device)
        drawn.random_(-(2**63), None)  # all 64 bits; without bounds it would leave out the sign
        is_kept = drawn.view(torch.uint8)[: vectors.numel()].view(vectors.shape) >= self.out
        return vectors * (is_kept * (_LEVELS / (_LEVELS - self.out)))
