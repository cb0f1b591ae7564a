"""One network per family of tasks, and the choice among them.

    in   `Fed`      vectors of each word, at the places where a task takes some
    out  scores     of each label, for each word or for each example

A network knows neither words nor labels by name, and not what feeds it.
"""

from typing import Annotated, TypeAlias

from pydantic import Field

from polyseme.tasks.networks.classification import ClassificationConfig, Classifier
from polyseme.tasks.networks.joined import JoinedConfig, JoinedReader
from polyseme.tasks.networks.pairs import PairReader, PairsConfig
from polyseme.tasks.networks.tagging import Tagger, TaggingConfig
from polyseme.tasks.spans import transitions
from polyseme.transfer.fed import Widths

NetworkConfig: TypeAlias = Annotated[
    TaggingConfig | ClassificationConfig | PairsConfig | JoinedConfig,
    Field(discriminator="kind"),
]
"""What is built between vectors and labels."""

Network: TypeAlias = Tagger | Classifier | PairReader | JoinedReader


def build_network(config: NetworkConfig, widths: Widths, labels: tuple[str, ...]) -> Network:
    """An untrained network for these labels; its weights depend on torch's seed."""
    match config:
        case TaggingConfig():
            allowed = None if config.scheme == "none" else transitions(labels, config.scheme)
            return Tagger(config, widths, len(labels), allowed)
        case ClassificationConfig():
            return Classifier(config, widths, len(labels))
        case PairsConfig():
            return PairReader(config, widths, len(labels))
        case JoinedConfig():
            return JoinedReader(config, widths, len(labels))
