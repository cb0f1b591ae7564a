"""Which objective, from its settings."""

from typing import Annotated

from pydantic import Field

from polyseme.objectives.bidirectional import Bidirectional, BidirectionalConfig
from polyseme.objectives.causal import Causal, CausalConfig
from polyseme.objectives.masked import Masked, MaskedConfig
from polyseme.objectives.neighbours import Neighbours, NeighboursConfig
from polyseme.objectives.nothing import Nothing, NothingConfig

ObjectiveConfig = Annotated[
    BidirectionalConfig | CausalConfig | MaskedConfig | NeighboursConfig | NothingConfig,
    Field(discriminator="kind"),
]
Objective = Bidirectional | Causal | Masked | Neighbours | Nothing


def build_objective(config: ObjectiveConfig, *, vocabulary: int, width: int) -> Objective:
    """The objective these settings ask for; `width` is one direction's."""
    match config:
        case BidirectionalConfig():
            return Bidirectional(config, vocabulary=vocabulary, width=width)
        case CausalConfig():
            return Causal(config, vocabulary=vocabulary, width=width)
        case MaskedConfig():
            return Masked(config, vocabulary=vocabulary, width=width)
        case NeighboursConfig():
            return Neighbours(config, vocabulary=vocabulary, width=width)
        case NothingConfig():
            return Nothing()
