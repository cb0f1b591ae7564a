"""Which of an encoder's parameters make which layer, how fast each learns, and from when on.

Layer 0 is what makes the word's own vector; layer k is the k-th that sees the sentence. A layer
near the input knows what holds for every task, so it should change less and later (Howard and
Ruder, 2018).
"""

from collections.abc import Iterator

from pydantic import Field
from torch import nn

from polyseme.config import Settings
from polyseme.encoders.encoder import Encoder
from polyseme.errors import ConfigError


class LayerTrainingConfig(Settings):
    """Which layers learn, how fast, and when they begin."""

    layers: tuple[int, ...] | None = None
    """Layers that are trained, 0 being the words themselves; without it all are."""
    lr_scale: float = Field(0.1, gt=0)
    """Learning rate of the top layer, times the task's own."""
    layer_lr_decay: float = Field(0.4, gt=0, le=1)
    """Learning rate of each layer, times that of the layer above it. ULMFiT has 1 / 2.6."""
    unfreeze_after: int = Field(0, ge=0)
    """Step from which the top layer is trained; until then only the task's own parameters are."""
    unfreeze_every: int = Field(0, ge=0)
    """Steps until the next layer below is trained too (gradual unfreezing); 0: all at once."""


def layer_parameters(encoder: Encoder) -> Iterator[tuple[int, str, nn.Parameter]]:
    """Each parameter with its layer and its name in the encoder."""
    for name, parameter in encoder.named_parameters():
        yield encoder.layer_of(name), name, parameter


def lowest_unfrozen(step: int, config: LayerTrainingConfig, num_layers: int) -> int:
    """The lowest layer that is trained at a step, counted from 0; `num_layers` if none does."""
    if step < config.unfreeze_after:
        return num_layers
    if config.unfreeze_every == 0:
        return 0
    return max(0, num_layers - 1 - (step - config.unfreeze_after) // config.unfreeze_every)


def check_layers(config: LayerTrainingConfig, num_layers: int) -> frozenset[int]:
    """The layers that are ever trained."""
    chosen = frozenset(range(num_layers) if config.layers is None else config.layers)
    if not chosen or not chosen <= frozenset(range(num_layers)):
        raise ConfigError(
            f"layers = {sorted(chosen)} cannot be trained: the model has layers 0 to "
            f"{num_layers - 1}. To train none, use kind = 'frozen'."
        )
    return chosen
