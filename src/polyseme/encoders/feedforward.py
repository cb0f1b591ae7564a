"""A hidden layer over the few words before, as in the first neural language model.

    in   vectors   (B, T, D)     layer 0, and the length of each sentence
    out  once      (B, T, D)     one layer with context; forward half first when separate

Bengio et al. (2003), "A neural probabilistic language model": the vectors of the last words, side
by side in their order, through one layer and tanh, and directly. An n-gram model counts histories;
here words of like vectors make like histories. What lies before its window it does not see.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.encoders.encoded import Direction, reverse_sequences


class FeedForwardConfig(Settings):
    """One hidden layer over a window of words."""

    kind: Literal["feedforward"] = "feedforward"
    dim: int = Field(256, ge=1, le=65_536)
    """Output dimension of one direction: of the word vectors and of the hidden layer."""
    window: int = Field(4, ge=1, le=64)
    """Words that are read: the word itself and those before it; with direction `joint`, as many
    after it, too."""
    num_layers: ClassVar[int] = 1
    max_length: ClassVar[None] = None
    """A sentence may have any length."""


class FeedForward(nn.Module):
    """The hidden layer; with direction `separate` a second one, which reads sentences reversed."""

    def __init__(self, config: FeedForwardConfig, direction: Direction) -> None:
        super().__init__()
        self.direction, self.before = direction, config.window - 1
        self.after = self.before if direction == "joint" else 0
        span = self.before + 1 + self.after
        self.stacks = nn.ModuleList(
            nn.Linear(span * config.dim, 2 * config.dim)
            for _ in range(2 if direction == "separate" else 1)
        )

    def layer_of(self, parameter: str) -> int:  # noqa: ARG002 (there is one)
        """The layer that a parameter makes."""
        return 1

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """(B, T, D) -> once (B, T, D)"""
        position = torch.arange(vectors.shape[1], device=vectors.device)
        # Outside the sentence there is nothing, before it as after it.
        words = vectors * (position < lengths[:, None])[..., None]
        forward = self._run(0, words)
        if self.direction != "separate":
            return (forward,)
        backward = self._run(1, reverse_sequences(words, lengths))
        return (torch.cat([forward, reverse_sequences(backward, lengths)], dim=-1),)

    def _run(self, stack: int, words: Tensor) -> Tensor:
        padded = functional.pad(words, (0, 0, self.before, self.after))
        steps = words.shape[1]
        span = range(self.before + 1 + self.after)
        windows = torch.cat([padded[:, at : at + steps] for at in span], dim=-1)  # (B, T, span * D)
        hidden, direct = self.stacks[stack](windows).chunk(2, dim=-1)
        # W x + U tanh(d + H x) of the paper, with one U, the softmax's, for both.
        total: Tensor = torch.tanh(hidden) + direct
        return total
