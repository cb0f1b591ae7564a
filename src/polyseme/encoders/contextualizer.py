"""The layers that see the sentence: what each kind must offer, and the choice among them.

    in   vectors (B, T, D), lengths (B,)   layer 0 of every word
    out  L times (B, T, D)                 one for each layer with context

A new kind is a file of its own and a line in each of the two unions here. Its settings have `dim`,
`num_layers` and `max_length`; its module says which layer each parameter belongs to, so that
fine-tuning can train layers one by one.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from polyseme.config import Settings
from polyseme.encoders.directions import Direction
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.encoders.transformer import Transformer, TransformerConfig


class NoContextualizerConfig(Settings):
    """No layer above the word itself: static vectors, as word2vec's."""

    kind: Literal["none"] = "none"
    dim: int = Field(300, ge=1, le=65_536)
    """Dimension."""

    @property
    def num_layers(self) -> int:
        """None with context."""
        return 0

    @property
    def max_length(self) -> None:
        """Any length: words do not see each other."""
        return


ContextualizerConfig: TypeAlias = Annotated[
    LstmConfig | TransformerConfig | NoContextualizerConfig, Field(discriminator="kind")
]
Contextualizer: TypeAlias = Lstm | Transformer


def build_contextualizer(
    config: ContextualizerConfig, direction: Direction
) -> Contextualizer | None:
    """Untrained layers; None if there are none. Weights depend on torch's seed."""
    match config:
        case LstmConfig():
            return Lstm(config, direction)
        case TransformerConfig():
            return Transformer(config, direction)
        case NoContextualizerConfig():
            return None
