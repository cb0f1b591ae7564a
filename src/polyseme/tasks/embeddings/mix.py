"""One vector per word from all of an encoder's layers, weighted by how useful each is; and dropout.

    in   layers   (L, B, T, D)   every layer, layer 0 being the word without context
    out  vectors     (B, T, D)   gamma * sum over k of weights[k] * layers[k]

`weights` are the softmax of learned logits, `gamma` is a learned scale; both as ELMo has them.
Lower layers know more about grammar and upper layers more about meaning, so each task
learns its own L + 1 numbers and leaves the encoder as it was.
"""

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.errors import ModelError

_LEVELS = 256  # values of a byte
_BYTES = 8  # in what is drawn at once


class ByteDropout(nn.Module):
    """Dropout that draws one random byte for each number, so that shares are multiples of 1/256.

    On a processor torch draws a whole random word for each, one after the other, which takes longer
    than all else between a cache and a task.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.out = round(share * _LEVELS)  # of so many values of a byte

    def forward(self, vectors: Tensor) -> Tensor:
        """Any shape. Chance is torch's, so that a seed repeats it."""
        if not (self.training and self.out):
            return vectors
        drawn = torch.empty(-(-vectors.numel() // _BYTES), dtype=torch.int64, device=vectors.device)
        drawn.random_(-(2**63), None)  # all 64 bits; without bounds it would leave out the sign
        is_kept = drawn.view(torch.uint8)[: vectors.numel()].view(vectors.shape) >= self.out
        return vectors * (is_kept * (_LEVELS / (_LEVELS - self.out)))


class MixConfig(Settings):
    """How the layers become one vector."""

    layer: int | None = None
    """One layer alone in place of a mix: 0 the word without context, -1 the top. Gamma is still
    learned."""
    layer_norm: bool = False
    """Layer normalization of each layer's vector of each word first (mean 0, variance 1), so that
    no layer weighs more because its numbers are larger."""
    penalty: float = Field(0.0, ge=0)
    """Regularization of the weights towards the plain average: this times the sum of squared
    logits is added to the task's loss (ELMo's lambda)."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout on the mixed vector in training."""


class LayerMix(nn.Module):
    """A learned, weighted sum of layers. Starts as their plain average."""

    def __init__(self, layers: int, config: MixConfig) -> None:
        super().__init__()
        self.config, self.num_layers = config, layers
        if config.layer is not None and not -layers <= config.layer < layers:
            raise ModelError(
                f"mix.layer = {config.layer}, but the encoder gives {layers} layers. Choose one "
                f"from 0 to {layers - 1}, or -1 for the top."
            )
        # Zeros, not ones: softmax turns equal logits into an average either way, but zeros
        # leave the penalty nothing to pull on, so it draws the mix towards the average.
        self.logits = nn.Parameter(torch.zeros(layers)) if config.layer is None else None
        self.gamma = nn.Parameter(torch.ones(()))
        self.dropout = ByteDropout(config.dropout)

    def forward(self, layers: Tensor) -> Tensor:
        """(L, B, T, D) -> (B, T, D)"""
        if len(layers) != self.num_layers:
            raise ModelError(
                f"This mix was trained on {self.num_layers} layers but the encoder gives "
                f"{len(layers)}. Train a new mix, or load the encoder it was trained with."
            )
        if self.logits is None:
            assert self.config.layer is not None
            mixed = self._normalize(layers[self.config.layer])
        else:
            weights = self.logits.softmax(dim=0)  # (L,), sums to one
            # Not einsum: it would multiply matrices, whose last bits depend on all rows together.
            parts = [weights[k] * self._normalize(layer) for k, layer in enumerate(layers)]
            mixed = sum(parts[1:], parts[0])
        scaled: Tensor = self.dropout(self.gamma * mixed)
        return scaled

    def _normalize(self, layer: Tensor) -> Tensor:
        """Each word by itself. AllenNLP and bilm-tf took one mean over the whole batch, so that a
        word's vector depended on the sentences beside it."""
        if not self.config.layer_norm:
            return layer
        return functional.layer_norm(layer, layer.shape[-1:])

    def penalty(self) -> Tensor:
        """What the task adds to its loss for weights far from the average."""
        if self.logits is None:
            return self.gamma.new_zeros(())
        return self.config.penalty * self.logits.square().sum()

    def weights(self) -> list[float]:
        """The weight of each layer; they add up to 1."""
        if self.logits is None:
            assert self.config.layer is not None
            chosen = self.config.layer % self.num_layers
            return [float(layer == chosen) for layer in range(self.num_layers)]
        weights: list[float] = self.logits.detach().double().softmax(dim=0).tolist()
        return weights
