"""Layers of attention, normalised before each part (Xiong et al., 2020).

    in   vectors   (B, T, D)     layer 0, and the length of each sentence
    out  L times   (B, T, D)     one for each layer; forward half first when apart

The sum that runs through all layers is normalised only at the very top.
"""

from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.encoders import exact as exactly
from polyseme.encoders.directions import Direction, reverse_sequences
from polyseme.errors import ModelError

_ROTARY_BASE = 10_000.0  # Su et al. (2021)


class TransformerConfig(Settings):
    """Layers of attention and feed-forward parts."""

    kind: Literal["transformer"] = "transformer"
    layers: int = Field(4, ge=1, le=256)
    """How many layers have context; layer 0, the word itself, is not counted."""
    width: int = Field(256, ge=1, le=65_536)
    """Output dimension of one direction."""
    heads: int = Field(4, ge=1, le=1_024)
    """Attention heads; `width` must be a multiple of twice their number."""
    inner: int = Field(1024, ge=1, le=262_144)
    """Width of the feed-forward part."""
    positions: Literal["rotary", "learned"] = "rotary"
    """How a word's place is told: by turning queries and keys, or by a learned vector."""
    longest: int = Field(512, ge=2, le=1_048_576)
    """Longest sentence with learned positions, marks counted."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on each part's outputs in training."""

    @model_validator(mode="after")
    def _heads_fit(self) -> "TransformerConfig":
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} is no multiple of 2 x {self.heads} heads")
        return self


class Transformer(nn.Module):
    """The layers with context. Apart, the second stack reads sentences turned round."""

    def __init__(self, config: TransformerConfig, direction: Direction) -> None:
        super().__init__()
        self.direction = direction
        stacks = 2 if direction == "apart" else 1
        self.stacks = nn.ModuleList(
            _Stack(config, sees_ahead=direction == "together") for _ in range(stacks)
        )

    def forward(
        self, vectors: Tensor, lengths: Tensor, *, exact: bool = False
    ) -> tuple[Tensor, ...]:
        """(B, T, D) -> L times (B, T, D)"""
        ahead: list[Tensor] = self.stacks[0](vectors, lengths, exact=exact)
        if self.direction != "apart":
            return tuple(ahead)
        behind = self.stacks[1](reverse_sequences(vectors, lengths), lengths, exact=exact)
        behind = [reverse_sequences(layer, lengths) for layer in behind]
        return tuple(torch.cat(both, dim=-1) for both in zip(ahead, behind, strict=True))


class _Stack(nn.Module):
    def __init__(self, config: TransformerConfig, *, sees_ahead: bool) -> None:
        super().__init__()
        self.sees_ahead = sees_ahead
        self.places = None
        if config.positions == "learned":
            self.places = nn.Embedding(config.longest, config.width)
            nn.init.normal_(self.places.weight, std=0.02)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, vectors: Tensor, lengths: Tensor, *, exact: bool) -> list[Tensor]:
        steps = vectors.shape[1]
        if exact:
            vectors = exactly.fill(vectors, exactly.ROWS, dim=1)
        place = torch.arange(vectors.shape[1], device=vectors.device)
        if self.places is not None:
            longest = self.places.num_embeddings
            _check_length(steps, longest)
            vectors = vectors + self.places(place.clamp(max=longest - 1))
        # A word may look at itself and what came before; padding is at the end, so only an
        # encoder that looks ahead could ever meet it.
        mask = (place < lengths[:, None])[:, None, None] if self.sees_ahead else None
        layers = []
        for block in self.blocks:
            vectors = block(vectors, mask, exact=exact)
            layers.append(vectors)
        layers[-1] = self.norm(layers[-1])
        return [layer[:, :steps] for layer in layers]


class _Block(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.is_rotary = config.positions == "rotary"
        self.before_attention = nn.LayerNorm(config.width)
        self.attend = nn.Linear(config.width, 3 * config.width)
        self.gather = nn.Linear(config.width, config.width)
        self.before_feed = nn.LayerNorm(config.width)
        self.widen = nn.Linear(config.width, config.inner)
        self.narrow = nn.Linear(config.inner, config.width)
        self.dropout = nn.Dropout(config.dropout)
        for last in (self.gather, self.narrow):
            # So that the sum over all layers starts no larger than its input (GPT-2).
            nn.init.normal_(last.weight, std=0.02 / (2 * config.layers) ** 0.5)
            nn.init.zeros_(last.bias)

    def forward(self, vectors: Tensor, mask: Tensor | None, *, exact: bool) -> Tensor:
        rows, steps, width = vectors.shape
        parts = _apply(self.attend, self.before_attention(vectors), exact=exact)
        parts = parts.view(rows, steps, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each (B, heads, T, D / heads)
        if self.is_rotary:
            query, key = _rotate(query, exact=exact), _rotate(key, exact=exact)
        if exact:
            seen = exactly.attend(query, key, value, mask)
        else:
            seen = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=mask is None
            )
        seen = seen.transpose(1, 2).reshape(rows, steps, width)
        vectors = vectors + self.dropout(_apply(self.gather, seen, exact=exact))
        wide = _apply(self.widen, self.before_feed(vectors), exact=exact)
        wide = exactly.evenly(functional.gelu, wide) if exact else functional.gelu(wide)
        total: Tensor = vectors + self.dropout(_apply(self.narrow, wide, exact=exact))
        return total


def _apply(linear: nn.Linear, vectors: Tensor, *, exact: bool) -> Tensor:
    if exact:
        return exactly.linear(vectors, linear.weight, linear.bias)
    result: Tensor = linear(vectors)
    return result


def _check_length(words: int, longest: int) -> None:
    if words > longest:
        raise ModelError(
            f"A sentence has {words} words, marks counted; this model learned places for "
            f"{longest}. Split the sentence, or train a model with encoder.context.longest of at "
            "least as many, or with rotary positions."
        )


def _rotate(vectors: Tensor, *, exact: bool) -> Tensor:
    """Turn pairs of numbers by an angle that grows with the place: (B, heads, T, D / heads)."""
    steps, width = vectors.shape[-2:]
    speed = _ROTARY_BASE ** (-torch.arange(0, width, 2, device=vectors.device) / width)
    angle = torch.outer(torch.arange(steps, device=vectors.device), speed)  # (T, width / 2)
    waves = [torch.cos, torch.sin]
    cos, sin = (exactly.evenly(wave, angle) if exact else wave(angle) for wave in waves)
    cos, sin = cos.to(vectors.dtype), sin.to(vectors.dtype)
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
