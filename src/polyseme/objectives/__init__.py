"""AXIS 2: what pretraining predicts. Batches become targets; encoded batches, losses.

A file each for the objectives, and here the choice among them.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field
from torch import Tensor

from polyseme.objectives.bidirectional import (
    CLOZE,
    Bidirectional,
    BidirectionalConfig,
    Causal,
    CausalConfig,
)
from polyseme.objectives.masked import Masked, MaskedConfig
from polyseme.objectives.prediction import EncoderOnly, EncoderOnlyConfig
from polyseme.objectives.word2vec import PART, Word2Vec, Word2VecConfig

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


def count_targets(objective: Objective, lengths: Tensor) -> Mapping[str, int] | None:
    """How many predictions each part has, told by the lengths of single sentences alone; None
    where chance decides, over all words of a batch."""
    with_neighbour, words = int((lengths - 1).sum()), int((lengths - 2).sum())
    match objective:
        case Bidirectional():
            cloze = {} if objective.cloze is None else {CLOZE: words}
            return {"forward": with_neighbour, "backward": with_neighbour, **cloze}
        case Causal():
            return {"forward": with_neighbour}
        case Word2Vec() if objective.config.architecture == "cbow":
            return {PART: words}
    return None
