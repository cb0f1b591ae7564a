"""What every encoder returns, all that anything downstream sees of it; and which way it reads."""

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Encoded:
    """Every layer's vector of every word. Layer 0 is the word without its sentence."""

    hidden_states: tuple[Tensor, ...]  # L times (B, T, D)
    mask: Tensor  # (B, T), True at words, False at padding
    is_separate: bool
    """Whether the first half of D read only what came before, the second only what came after."""

    @property
    def layers(self) -> Tensor:
        """(L, B, T, D), zero where there is no word."""
        return torch.stack(self.hidden_states) * self.mask[..., None]

    @property
    def top(self) -> Tensor:
        """(B, T, D)"""
        return self.hidden_states[-1]

    @property
    def halves(self) -> tuple[Tensor, Tensor]:
        """The top layer's forward and backward half, each (B, T, D / 2)."""
        forward, backward = self.top.chunk(2, dim=-1)
        return forward, backward
