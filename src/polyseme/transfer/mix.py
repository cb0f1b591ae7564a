"""One vector per word from all of an encoder's layers, weighted by how useful each is.

    in   layers   (L, B, T, D)   every layer, layer 0 being the word without context
    out  vectors     (B, T, D)   scale * sum over k of softmax(weights)[k] * layers[k]

Lower layers know more about grammar and upper layers more about meaning, so each task
learns its own L + 1 numbers and leaves the encoder as it was.
"""

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.errors import ModelError
from polyseme.transfer.dropout import ByteDropout


class MixConfig(Settings):
    """How the layers become one vector."""

    only: int | None = None
    """One layer alone in place of a mix: 0 the word without context, -1 the top. Its scale is still
    learned."""
    normalised: bool = False
    """Whether each layer's vector of each word is brought to mean 0 and variance 1 first, so that
    no layer weighs more because its numbers are larger."""
    penalty: float = Field(0.0, ge=0)
    """How strongly the weights are drawn towards the plain average: this times the sum of their
    squares is added to the task's loss."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout on the mixed vector in training."""


class LayerMix(nn.Module):
    """A learned, weighted sum of layers. Starts as their plain average."""

    def __init__(self, layers: int, config: MixConfig) -> None:
        super().__init__()
        self.config, self.num_layers = config, layers
        if config.only is not None and not -layers <= config.only < layers:
            raise ModelError(
                f"mix.only = {config.only}, but the encoder gives {layers} layers. Choose one from "
                f"0 to {layers - 1}, or -1 for the top."
            )
        # Zeros, not ones: softmax turns equal weights into an average either way, but zeros
        # leave the penalty nothing to pull on, so it draws the mix towards the average.
        self.weights = nn.Parameter(torch.zeros(layers)) if config.only is None else None
        self.scale = nn.Parameter(torch.ones(()))
        self.dropout = ByteDropout(config.dropout)

    def forward(self, layers: Tensor) -> Tensor:
        """(L, B, T, D) -> (B, T, D)"""
        if len(layers) != self.num_layers:
            raise ModelError(
                f"This mix was trained on {self.num_layers} layers but the encoder gives "
                f"{len(layers)}. Train a new mix, or load the encoder it was trained with."
            )
        if self.weights is None:
            assert self.config.only is not None
            mixed = self._normalise(layers[self.config.only])
        else:
            share = self.weights.softmax(dim=0)  # (L,), sums to one
            # Not einsum: it would multiply matrices, whose last bits depend on all rows together.
            parts = [share[k] * self._normalise(layer) for k, layer in enumerate(layers)]
            mixed = sum(parts[1:], parts[0])
        scaled: Tensor = self.dropout(self.scale * mixed)
        return scaled

    def _normalise(self, layer: Tensor) -> Tensor:
        """Each word by itself. AllenNLP and bilm-tf took one mean over the whole batch, so that a
        word's vector depended on the sentences beside it."""
        if not self.config.normalised:
            return layer
        return functional.layer_norm(layer, layer.shape[-1:])

    def penalty(self) -> Tensor:
        """What the task adds to its loss for weights far from the average."""
        if self.weights is None:
            return self.scale.new_zeros(())
        return self.config.penalty * self.weights.square().sum()

    def told(self) -> dict[str, list[float] | float]:
        """What was learned, as numbers: the share of each layer, and the scale."""
        if self.weights is None:
            assert self.config.only is not None
            only = self.config.only % self.num_layers
            shares = [float(layer == only) for layer in range(self.num_layers)]
        else:
            shares = self.weights.detach().double().softmax(dim=0).tolist()
        return {"layers": shares, "scale": float(self.scale.detach())}
