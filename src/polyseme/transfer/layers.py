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
from polyseme.encoders.lstm import Lstm
from polyseme.encoders.transformer import Transformer
from polyseme.errors import ConfigError


class LayerTrainingConfig(Settings):
    """Which layers learn, how fast, and when they begin."""

    layers: tuple[int, ...] | None = None
    """Layers that are trained, 0 being the words themselves; without it all are."""
    rate: float = Field(0.1, gt=0)
    """Learning rate of the top layer, as a share of the task's own."""
    rate_below: float = Field(0.4, gt=0, le=1)
    """Learning rate of each layer as a share of that above it. ULMFiT has 1 / 2.6."""
    wakes_at: int = Field(0, ge=0)
    """Step at which the top layer begins to learn; until then only the task's own parameters do."""
    wakes_every: int = Field(0, ge=0)
    """Steps until the next layer below begins too; 0: all begin together."""


def layer_parameters(encoder: Encoder) -> Iterator[tuple[int, str, nn.Parameter]]:
    """Each parameter with its layer and its name in the encoder."""
    top = encoder.config.num_layers - 1
    for name, parameter in encoder.named_parameters():
        yield _layer_of(name, encoder, top), name, parameter


def _layer_of(name: str, encoder: Encoder, top: int) -> int:
    match encoder.context, name.split("."):
        case Lstm(), ["context", "layers", number, *_]:
            return 1 + int(number)
        case Transformer(), ["context", "stacks", _, "blocks", number, *_]:
            return 1 + int(number)
        case Transformer(), ["context", "stacks", _, "norm", *_]:
            return top
        case Transformer(), ["context", "stacks", _, "places", *_]:
            return 0
        case _, ["inputs" | "segments", *_]:
            return 0
    raise AssertionError(name)


def lowest_awake(step: int, config: LayerTrainingConfig, num_layers: int) -> int:
    """The lowest layer that learns at a step, counted from 0; `num_layers` if none does."""
    if step < config.wakes_at:
        return num_layers
    if config.wakes_every == 0:
        return 0
    return max(0, num_layers - 1 - (step - config.wakes_at) // config.wakes_every)


def check_layers(config: LayerTrainingConfig, num_layers: int) -> frozenset[int]:
    """The layers that are ever trained."""
    chosen = frozenset(range(num_layers) if config.layers is None else config.layers)
    if not chosen or not chosen <= frozenset(range(num_layers)):
        raise ConfigError(
            f"layers = {sorted(chosen)} cannot be trained: the model has layers 0 to "
            f"{num_layers - 1}. To train none, use kind = 'frozen'."
        )
    return chosen
