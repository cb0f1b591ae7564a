"""A word from its characters: convolutions, max-pooling, highway layers, a projection.

    in   char_ids (U, C)   0 only where there is no word
    out  vectors  (U, D)

Every distinct word goes through here once in a batch, however often it occurs. After Kim et al.
(2016), in the form of the published ELMo models.
"""

from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.encoders.filters import max_pool, padding_start


class FilterConfig(Settings):
    """Filters of one width."""

    width: int = Field(ge=1, le=7)
    """Characters seen at a time."""
    num_filters: int = Field(ge=1, le=65_536)
    """How many filters of this width."""


_PUBLISHED = tuple(
    FilterConfig(width=width, num_filters=number)
    for width, number in ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
)


class CharactersConfig(Settings):
    """A convolution over characters."""

    char_dim: int = Field(16, ge=1, le=4_096)
    """Dimension of a character's vector."""
    filters: tuple[FilterConfig, ...] = Field(_PUBLISHED, min_length=1, max_length=64)
    """Filters by width."""
    activation: Literal["relu", "tanh"] = "relu"
    """Activation function after max-pooling."""
    num_highway_layers: int = Field(2, ge=0, le=64)
    """Highway layers between the filters and the projection."""
    dim: int = Field(512, ge=1, le=65_536)
    """Output dimension."""
    projected: bool = True
    """Whether a linear projection to `dim` follows the highway layers; without it `dim` must be the
    number of filters."""

    @model_validator(mode="after")
    def _dim_fits(self) -> "CharactersConfig":
        if not self.projected and self.dim != self.features:
            raise ValueError(
                f"without a projection dim is the number of filters, {self.features}, "
                f"not {self.dim}"
            )
        return self

    @property
    def features(self) -> int:
        """Filters of all widths."""
        return sum(filters.num_filters for filters in self.filters)

    @property
    def widest(self) -> int:
        """Characters that the widest filter sees."""
        return max(filters.width for filters in self.filters)


class CharacterEncoder(nn.Module):
    """Character ids in, vectors out."""

    def __init__(self, config: CharactersConfig, *, num_chars: int) -> None:
        super().__init__()
        # Id 0 is no character.
        self.char_embedding = nn.Embedding(num_chars - 1, config.char_dim)
        self.filters = nn.ModuleList(
            nn.Conv1d(config.char_dim, filters.num_filters, filters.width)
            for filters in config.filters
        )
        self.highways = nn.ModuleList(
            _Highway(config.features) for _ in range(config.num_highway_layers)
        )
        self.projection = nn.Linear(config.features, config.dim) if config.projected else None
        self.activation = functional.relu if config.activation == "relu" else torch.tanh

    def forward(self, char_ids: Tensor) -> Tensor:
        """(U, C) -> (U, D)"""
        char_vectors = self.char_embedding((char_ids - 1).clamp(min=0)) * (char_ids > 0)[..., None]
        if self.training or torch.is_grad_enabled():
            transposed = char_vectors.transpose(1, 2)  # (U, E, C)
            # Not amax: its gradient looks for all equal maxima, for a twentieth of a step.
            maxima = [filters(transposed).max(dim=-1).values for filters in self.filters]
            features = self.activation(torch.cat(maxima, dim=-1))  # (U, F)
        else:
            features = self.activation(self._max_pool(char_vectors, padding_start(char_ids)))
        for highway in self.highways:
            features = highway(features)
        return features if self.projection is None else _apply(self.projection, features)

    def _max_pool(self, char_vectors: Tensor, padded_from: int) -> Tensor:
        """(U, C, E) -> (U, F)"""
        kind = char_vectors.device.type
        is_mixed = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if is_mixed else char_vectors.dtype
        filters = [each for each in self.filters if isinstance(each, nn.Conv1d)]
        return max_pool(char_vectors, filters, padded_from=padded_from, dtype=dtype).to(dtype)


def _apply(linear: nn.Linear, features: Tensor) -> Tensor:
    """(U, F) -> (U, D)"""
    is_plain = features.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if torch.is_grad_enabled() or not is_plain or features.device.type != "cpu":
        result: Tensor = linear(features)
        return result
    # Few words and many weights: transposed, the words are copied for it and not the weights.
    return torch.addmm(linear.bias[:, None], linear.weight, features.t().contiguous()).t()


class _Highway(nn.Module):
    """Carries its input on where the gate is open, a transformed one where it is closed."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, 2 * dim)
        # Srivastava et al. (2015): begin by carrying on. Here an open gate carries.
        nn.init.constant_(self.linear.bias[dim:], 1.0)

    def forward(self, features: Tensor) -> Tensor:
        """(U, F) -> (U, F)"""
        changed, gate = _apply(self.linear, features).chunk(2, dim=-1)
        return torch.lerp(functional.relu(changed), features, gate.sigmoid())
