"""Layers of LSTM cells that read a sentence both ways, with a model's layers put beside them.

    in   Fed        first (B, T, D), and middle and last where the feed puts something there
    out  vectors    (B, T, W)     what the last layer gives, with `last` beside it

Dropout on what comes in is the feed's own; here it is on what each layer gives.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.transfer.dropout import ByteDropout
from polyseme.transfer.fed import Fed, Widths

_MARK_WIDTH = 16


class ContextConfig(Settings):
    """Layers that read a sentence both ways."""

    layers: int = Field(1, ge=1, le=16)
    """How many; from the second on, each adds to what the one below gave."""
    width: int = Field(256, ge=2, le=65_536, multiple_of=2)
    """Output dimension of a layer, half of it from each direction."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on each layer's outputs in training."""


class Context(nn.Module):
    """The layers."""

    def __init__(self, config: ContextConfig, widths: Widths, *, is_marked: bool = False) -> None:
        super().__init__()
        self.mark = nn.Embedding(2, _MARK_WIDTH) if is_marked else None
        read = widths.first + (_MARK_WIDTH if is_marked else 0)
        one = LstmConfig(layers=1, width=config.width)
        self.layers = nn.ModuleList([Lstm(one, "together", read=read)])
        read = config.width + widths.middle
        for _ in range(1, config.layers):
            self.layers.append(Lstm(one, "together", read=read))
            read = config.width
        self.dropout = ByteDropout(config.dropout)
        # Behind the only layer, the middle is the end.
        self._ends_in_middle = config.layers == 1
        self.width = config.width + widths.last + (widths.middle if self._ends_in_middle else 0)

    def forward(self, fed: Fed, marked: Tensor | None = None) -> Tensor:
        """`marked` (B,): the place of a word the task is about, -1 for none."""
        lengths = fed.mask.sum(dim=1)
        vectors = fed.first
        if self.mark is not None:
            vectors = torch.cat([vectors, self.mark(_is_marked(fed.mask, marked))], dim=-1)
        for number, layer in enumerate(self.layers):
            [found] = layer(vectors, lengths)
            found = self.dropout(found)
            vectors = found if number == 0 else found + vectors[..., : found.shape[-1]]
            if number == 0 and fed.middle is not None:
                vectors = torch.cat([vectors, fed.middle], dim=-1)
        if fed.last is not None:
            vectors = torch.cat([vectors, fed.last], dim=-1)
        return vectors


def _is_marked(mask: Tensor, marked: Tensor | None) -> Tensor:
    """(B, T) 1 at the marked word, 0 at all others."""
    if marked is None:
        return torch.zeros_like(mask, dtype=torch.int64)
    place = torch.arange(mask.shape[1], device=mask.device)
    return (place == marked[:, None]).long()
