"""The task families, and the choice among them: the one place that lists them all."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field

from polyseme.tasks.families.choice import Choice, ChoiceConfig, SequenceChoiceConfig
from polyseme.tasks.families.classification import (
    Classification,
    ClassificationConfig,
    Pairs,
    PairsConfig,
    SequencePair,
    SequencePairConfig,
)
from polyseme.tasks.families.coreference import Coreference, CoreferenceConfig
from polyseme.tasks.families.family import TaskFamily
from polyseme.tasks.families.question_answering import (
    QuestionAnswering,
    QuestionAnsweringConfig,
)
from polyseme.tasks.families.seq2seq import Seq2Seq, Seq2SeqConfig
from polyseme.tasks.families.tagging import Tagging, TaggingConfig

NetworkConfig: TypeAlias = Annotated[
    TaggingConfig
    | ClassificationConfig
    | PairsConfig
    | SequencePairConfig
    | CoreferenceConfig
    | Seq2SeqConfig
    | QuestionAnsweringConfig
    | ChoiceConfig
    | SequenceChoiceConfig,
    Field(discriminator="kind"),
]
"""What is built between vectors and findings."""


def family_of(config: NetworkConfig) -> TaskFamily[Any, Any]:  # noqa: PLR0911 (one a family)
    """The family these settings are of; it has seen no training data."""
    match config:
        case TaggingConfig():
            return Tagging(config)
        case ClassificationConfig():
            return Classification(config)
        case PairsConfig():
            return Pairs(config)
        case SequencePairConfig():
            return SequencePair(config)
        case CoreferenceConfig():
            return Coreference(config)
        case Seq2SeqConfig():
            return Seq2Seq(config)
        case QuestionAnsweringConfig():
            return QuestionAnswering(config)
        case ChoiceConfig() | SequenceChoiceConfig():
            return Choice(config)
