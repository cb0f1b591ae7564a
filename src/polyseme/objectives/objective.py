"""Which objective, from its settings."""

from typing import Annotated

from pydantic import Field

from polyseme.objectives.bidirectional import (
    Bidirectional,
    BidirectionalConfig,
    Causal,
    CausalConfig,
)
from polyseme.objectives.masked import Masked, MaskedConfig
from polyseme.objectives.prediction import EncoderOnly, EncoderOnlyConfig
from polyseme.objectives.word2vec import Word2Vec, Word2VecConfig

ObjectiveConfig = Annotated[
    BidirectionalConfig | CausalConfig | MaskedConfig | Word2VecConfig | EncoderOnlyConfig,
    Field(discriminator="kind"),
]
Objective = Bidirectional | Causal | Masked | Word2Vec | EncoderOnly


def build_objective(config: ObjectiveConfig, *, vocab_size: int, dim: int) -> Objective:
    """The objective these settings ask for; `dim` is one direction's."""
    match config:
        case BidirectionalConfig():
            return Bidirectional(config, vocab_size=vocab_size, dim=dim)
        case CausalConfig():
            return Causal(config, vocab_size=vocab_size, dim=dim)
        case MaskedConfig():
            return Masked(config, vocab_size=vocab_size, dim=dim)
        case Word2VecConfig():
            return Word2Vec(config, vocab_size=vocab_size, dim=dim)
        case EncoderOnlyConfig():
            return EncoderOnly()
