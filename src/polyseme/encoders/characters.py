"""A word from its characters: convolutions, the maximum of each filter, highways, a projection.

    in   characters (U, C)   ids, 0 only where there is no word
    out  vectors    (U, D)

Every distinct word goes through here once in a batch, however often it occurs. After Kim et al.
(2016), in the form of the published ELMo models.
"""

from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.encoders import exact as exactly
from polyseme.encoders.filters import find_peaks, spelt_to


class FilterConfig(Settings):
    """Filters of one width."""

    width: int = Field(ge=1, le=7)
    """Characters seen at a time."""
    number: int = Field(ge=1, le=65_536)
    """How many filters of this width."""


_PUBLISHED = tuple(
    FilterConfig(width=width, number=number)
    for width, number in ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
)


class CharactersConfig(Settings):
    """A convolution over characters."""

    character_width: int = Field(16, ge=1, le=4_096)
    """Dimension of a character's vector."""
    filters: tuple[FilterConfig, ...] = Field(_PUBLISHED, min_length=1, max_length=64)
    """Filters by width."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation function after max-pooling."""
    highways: int = Field(2, ge=0, le=64)
    """Highway layers between the filters and the projection."""
    width: int = Field(512, ge=1, le=65_536)
    """Output dimension."""
    projected: bool = True
    """Whether a projection makes `width` numbers of the filters' outputs; without it `width` must
    be the number of filters."""

    @model_validator(mode="after")
    def _width_fits(self) -> "CharactersConfig":
        if not self.projected and self.width != self.features:
            raise ValueError(
                f"without a projection the width is the number of filters, {self.features}, "
                f"not {self.width}"
            )
        return self

    @property
    def features(self) -> int:
        """Filters of all widths."""
        return sum(filters.number for filters in self.filters)

    @property
    def widest(self) -> int:
        """Characters that the widest filter sees."""
        return max(filters.width for filters in self.filters)


class CharacterEncoder(nn.Module):
    """Spellings in, vectors out."""

    def __init__(self, config: CharactersConfig, *, alphabet: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(alphabet - 1, config.character_width)  # id 0 is no character
        self.filters = nn.ModuleList(
            nn.Conv1d(config.character_width, filters.number, filters.width)
            for filters in config.filters
        )
        self.highways = nn.ModuleList(_Highway(config.features) for _ in range(config.highways))
        self.projection = nn.Linear(config.features, config.width) if config.projected else None
        self.activation = functional.relu if config.activation == "relu" else torch.tanh

    def forward(self, characters: Tensor, *, exact: bool = False) -> Tensor:
        """(U, C) -> (U, D)"""
        letters = self.characters((characters - 1).clamp(min=0)) * (characters > 0)[..., None]
        if exact:
            return self._exactly(letters)
        if self.training or torch.is_grad_enabled():
            turned = letters.transpose(1, 2)  # (U, E, C)
            # Not amax: its gradient looks for all equal maxima, for a twentieth of a step.
            peaks = [filters(turned).max(dim=-1).values for filters in self.filters]
            features = self.activation(torch.cat(peaks, dim=-1))  # (U, F)
        else:
            features = self.activation(self._read(letters, spelt_to(characters)))
        for highway in self.highways:
            features = highway(features)
        return features if self.projection is None else _apply(self.projection, features)

    def _read(self, letters: Tensor, spelt: int) -> Tensor:
        """(U, C, E) -> (U, F)"""
        kind = letters.device.type
        is_mixed = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if is_mixed else letters.dtype
        filters = [each for each in self.filters if isinstance(each, nn.Conv1d)]
        return find_peaks(letters, filters, spelt=spelt, dtype=dtype).to(dtype)

    def _exactly(self, letters: Tensor) -> Tensor:
        """From characters' vectors (U, C, E) -> (U, D)"""
        peaks = [exactly.peaks(letters, each) for each in self.filters]
        features = exactly.evenly(self.activation, torch.cat(peaks, dim=-1))
        for highway in self.highways:
            features = highway(features, exact=True)
        last = self.projection
        return features if last is None else exactly.linear(features, last.weight, last.bias)


def _apply(linear: nn.Linear, features: Tensor) -> Tensor:
    """(U, F) -> (U, W)"""
    is_plain = features.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if torch.is_grad_enabled() or not is_plain or features.device.type != "cpu":
        result: Tensor = linear(features)
        return result
    # Few words and many weights: turned, the words are copied for it and not the weights.
    return torch.addmm(linear.bias[:, None], linear.weight, features.t().contiguous()).t()


class _Highway(nn.Module):
    """Carries its input on where the gate is open, a transformed one where it is closed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.both = nn.Linear(width, 2 * width)
        # Srivastava et al. (2015): begin by carrying on. Here an open gate carries.
        nn.init.constant_(self.both.bias[width:], 1.0)

    def forward(self, features: Tensor, *, exact: bool = False) -> Tensor:
        """(U, F) -> (U, F)"""
        if exact:
            both = exactly.linear(features, self.both.weight, self.both.bias)
            changed, gate = both.chunk(2, dim=-1)
            gate = exactly.evenly(torch.sigmoid, gate)
            return gate * features + (1 - gate) * functional.relu(changed)
        changed, gate = _apply(self.both, features).chunk(2, dim=-1)
        return torch.lerp(functional.relu(changed), features, gate.sigmoid())
