"""Which way an encoder reads, and how sentences are turned round."""

from typing import Literal

import torch
from torch import Tensor

Direction = Literal["forward", "apart", "together"]
"""forward: a word sees what came before. apart: two stacks, one reading each way, which never see
each other. together: every layer sees both sides."""


def reverse_sequences(vectors: Tensor, lengths: Tensor) -> Tensor:
    """Each sentence (B, T, D) back to front. Turning twice changes nothing."""
    position = torch.arange(vectors.shape[1], device=vectors.device)  # (T,)
    length = lengths[:, None]
    # Only the real words are turned. Padding must stay at the end, or the backward stack would
    # read it first and carry its state into the sentence.
    index = torch.where(position < length, length - 1 - position, position)  # (B, T)
    return vectors.gather(1, index[..., None].expand_as(vectors))
