"""Layers of attention, normalised before each part (Xiong et al., 2020).

    in   vectors   (B, T, D)     layer 0, and the length of each sentence
    out  L times   (B, T, D)     one for each layer; forward half first when separate

The sum that runs through all layers is normalised only at the very top.
"""

from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.encoders.encoded import Direction, reverse_sequences
from polyseme.errors import ModelError

_ROTARY_BASE = 10_000.0  # Su et al. (2021)


class TransformerConfig(Settings):
    """Layers of attention and feed-forward parts."""

    kind: Literal["transformer"] = "transformer"
    num_layers: int = Field(4, ge=1, le=256)
    """Number of layers with context, not counting layer 0, the word itself."""
    dim: int = Field(256, ge=1, le=65_536)
    """Output dimension of one direction."""
    num_heads: int = Field(4, ge=1, le=1_024)
    """Attention heads; `dim` must be a multiple of twice their number."""
    ffn_dim: int = Field(1024, ge=1, le=262_144)
    """Inner dimension of the feed-forward part."""
    positions: Literal["rotary", "learned"] = "rotary"
    """How a word's position is encoded: by rotating queries and keys, or by a learned embedding."""
    max_positions: int = Field(512, ge=2, le=1_048_576)
    """Words in the longest sentence with learned positions, special tokens counted."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on each part's outputs in training."""

    @property
    def max_length(self) -> int | None:
        """Positions that a sentence may have, BOS and EOS counted; None: any number."""
        return self.max_positions if self.positions == "learned" else None

    @model_validator(mode="after")
    def _heads_fit(self) -> "TransformerConfig":
        if self.dim % (2 * self.num_heads):
            raise ValueError(f"dim {self.dim} is not a multiple of 2 x {self.num_heads} heads")
        return self


class Transformer(nn.Module):
    """The layers with context. When separate, the second stack reads sentences reversed."""

    def __init__(self, config: TransformerConfig, direction: Direction) -> None:
        super().__init__()
        self.direction, self.num_layers = direction, config.num_layers
        stacks = 2 if direction == "separate" else 1
        self.stacks = nn.ModuleList(
            _Stack(config, is_causal=direction != "joint") for _ in range(stacks)
        )

    def layer_of(self, parameter: str) -> int:
        """The layer that a parameter makes, by its name in here; positions are part of layer 0."""
        match parameter.split("."):  # stacks.0.blocks.2.fc1.weight
            case [_, _, "blocks", number, *_]:
                return 1 + int(number)
            case [_, _, "norm", *_]:
                return self.num_layers
        return 0

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """(B, T, D) -> L times (B, T, D)"""
        forward: list[Tensor] = self.stacks[0](vectors, lengths)
        if self.direction != "separate":
            return tuple(forward)
        backward = self.stacks[1](reverse_sequences(vectors, lengths), lengths)
        backward = [reverse_sequences(layer, lengths) for layer in backward]
        return tuple(torch.cat(both, dim=-1) for both in zip(forward, backward, strict=True))


class _Stack(nn.Module):
    def __init__(self, config: TransformerConfig, *, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal
        self.position_embedding = None
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.max_positions, config.dim)
            nn.init.normal_(self.position_embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, vectors: Tensor, lengths: Tensor) -> list[Tensor]:
        steps = vectors.shape[1]
        position = torch.arange(steps, device=vectors.device)
        if self.position_embedding is not None:
            _check_length(steps, self.position_embedding.num_embeddings)
            vectors = vectors + self.position_embedding(position)
        # Causal attention goes to a word itself and those before it; padding is at the end, so
        # only an encoder that is not causal could ever meet it.
        mask = None if self.is_causal else (position < lengths[:, None])[:, None, None]
        layers = []
        for block in self.blocks:
            vectors = block(vectors, mask)
            layers.append(vectors)
        layers[-1] = self.norm(layers[-1])
        return layers


class _Block(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.is_rotary = config.positions == "rotary"
        self.attention_norm = nn.LayerNorm(config.dim)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out_proj = nn.Linear(config.dim, config.dim)
        self.ffn_norm = nn.LayerNorm(config.dim)
        self.fc1 = nn.Linear(config.dim, config.ffn_dim)
        self.fc2 = nn.Linear(config.ffn_dim, config.dim)
        self.dropout = nn.Dropout(config.dropout)
        for last in (self.out_proj, self.fc2):
            # So that the sum over all layers starts no larger than its input (GPT-2).
            nn.init.normal_(last.weight, std=0.02 / (2 * config.num_layers) ** 0.5)
            nn.init.zeros_(last.bias)

    def forward(self, vectors: Tensor, mask: Tensor | None) -> Tensor:
        rows, steps, dim = vectors.shape
        parts = self.qkv(self.attention_norm(vectors))
        parts = parts.view(rows, steps, 3, self.num_heads, dim // self.num_heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each (B, heads, T, D / heads)
        if self.is_rotary:
            query, key = _rotate(query), _rotate(key)
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None
        )
        attended = attended.transpose(1, 2).reshape(rows, steps, dim)
        vectors = vectors + self.dropout(self.out_proj(attended))
        hidden = functional.gelu(self.fc1(self.ffn_norm(vectors)))
        total: Tensor = vectors + self.dropout(self.fc2(hidden))
        return total


def _check_length(words: int, max_positions: int) -> None:
    if words > max_positions:
        raise ModelError(
            f"A sentence has {words} words, special tokens counted; this model has position "
            f"embeddings for {max_positions}. Split the sentence, or train a model with "
            "encoder.contextualizer.max_positions of at least as many, or with rotary positions."
        )


def _rotate(vectors: Tensor) -> Tensor:
    """Rotate pairs of numbers by angles that grow with the position: (B, heads, T, D / heads)."""
    steps, dim = vectors.shape[-2:]
    speed = _ROTARY_BASE ** (-torch.arange(0, dim, 2, device=vectors.device) / dim)
    angle = torch.outer(torch.arange(steps, device=vectors.device), speed)  # (T, dim / 2)
    cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
