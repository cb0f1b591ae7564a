"""Which way an encoder reads, and how sentences are reversed."""

from typing import Literal

import torch
from torch import Tensor

Direction = Literal["forward", "separate", "joint"]
"""Which words the vector of a word may depend on.

forward: those before it (a causal language model, as GPT). separate: a forward and a backward
stack that never see each other (a biLM, as ELMo). joint: in every layer the words on both sides
(bidirectional, as BERT)."""


def reverse_sequences(vectors: Tensor, lengths: Tensor) -> Tensor:
    """Each sentence (B, T, D) back to front. Reversed twice, nothing has changed."""
    position = torch.arange(vectors.shape[1], device=vectors.device)  # (T,)
    length = lengths[:, None]
    # Only the real words are reversed. Padding must stay at the end, or the backward stack would
    # read it first and carry its state into the sentence.
    index = torch.where(position < length, length - 1 - position, position)  # (B, T)
    return vectors.gather(1, index[..., None].expand_as(vectors))
