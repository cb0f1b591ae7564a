"""What every encoder returns, and all that anything downstream ever sees of it."""

from dataclasses import dataclass

import torch
from torch import Tensor


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
