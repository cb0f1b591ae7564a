"""Layer 0 and the layers with context, as one module that gives `Encoded`."""

from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.batches.batch import Batch
from polyseme.config import Settings
from polyseme.encoders.directions import Direction
from polyseme.encoders.encoded import Encoded
from polyseme.encoders.inputs import (
    CharacterInputConfig,
    FusedInputConfig,
    InputConfig,
    Inputs,
    LookupInputConfig,
)
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.encoders.reading import FEWEST_WORDS, read
from polyseme.encoders.transformer import Transformer, TransformerConfig


class NoContextConfig(Settings):
    """No layer above the word itself: static vectors, as word2vec's."""

    kind: Literal["none"] = "none"
    width: int = Field(300, ge=1, le=65_536)
    """Dimension."""


ContextConfig = Annotated[
    LstmConfig | TransformerConfig | NoContextConfig, Field(discriminator="kind")
]


class EncoderConfig(Settings):
    """Words in, vectors out."""

    input: InputConfig
    """Where a word's own vector, layer 0, comes from."""
    context: ContextConfig
    """The layers that see the sentence."""
    direction: Direction = "apart"
    """Which way they read."""
    segments: bool = False
    """Whether the first and second sentence of a pair are told apart by a learned vector."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on layer 0 in training."""

    @model_validator(mode="after")
    def _halves_fit(self) -> "EncoderConfig":
        is_halved = self.direction == "together" and isinstance(self.context, LstmConfig)
        if is_halved and self.context.width % 2:
            raise ValueError(
                "an LSTM that reads 'together' gives half its width each way, and "
                f"{self.context.width} is odd"
            )
        return self

    @property
    def table_width(self) -> int:
        """Dimension of the input's embedding table; 0 without one."""
        match self.input:
            case LookupInputConfig():
                return self.input.width
            case FusedInputConfig():
                return self.input.lookup
            case CharacterInputConfig():
                return 0

    @property
    def widest_filter(self) -> int:
        """Characters that must be there to be read at a time; 0 where none are read."""
        match self.input:
            case LookupInputConfig():
                return 0
            case FusedInputConfig():
                return self.input.characters.widest
            case CharacterInputConfig():
                return self.input.widest

    @property
    def num_layers(self) -> int:
        """Vectors for each word that come out: layer 0 and those with context."""
        return 1 if isinstance(self.context, NoContextConfig) else 1 + self.context.layers

    @property
    def output_width(self) -> int:
        """Output dimension of each layer."""
        return self.context.width * (2 if self.direction == "apart" else 1)


class Encoder(nn.Module):
    """A batch in, `Encoded` out. The same module trains, embeds and serves."""

    def __init__(self, config: EncoderConfig, *, vocabulary: int, alphabet: int) -> None:
        super().__init__()
        self.config = config
        width = config.context.width
        self.inputs = Inputs(config.input, vocabulary=vocabulary, alphabet=alphabet, width=width)
        self.segments = nn.Embedding(2, width) if config.segments else None
        self.dropout = nn.Dropout(config.dropout)
        self.context: nn.Module | None
        match config.context:
            case LstmConfig():
                self.context = Lstm(config.context, config.direction)
            case TransformerConfig():
                self.context = Transformer(config.context, config.direction)
            case NoContextConfig():
                self.context = None

    def forward(self, batch: Batch) -> Encoded:
        """Layer 0 and every layer above it."""
        distinct = self.inputs(batch.ids, batch.characters)  # (U, D)
        return self.in_context(distinct, batch)

    def in_context(
        self, distinct: Tensor, batch: Batch, *, exact: bool = False, marks: bool = True
    ) -> Encoded:
        """From layer 0 of the batch's distinct words (U, D), wherever it comes from.

        `exact`: among batches of one number of rows, a row's bits depend on that row alone, if
        those of `distinct` do (`inputs` has `exact` too). Without `marks`, nothing is promised of
        the vectors at the first and last place of a sentence, which must be marks.
        """
        words = self.dropout(functional.embedding(batch.words, distinct))  # (B, T, D)
        above: tuple[Tensor, ...] = ()
        if isinstance(self.context, Lstm) and not exact and self._is_only_read(batch):
            above = read(self.context, distinct, batch.words, batch.lengths, marks=marks)
        elif self.context is not None:
            vectors = words
            if self.segments is not None:
                # A sentence alone is a first sentence, as it was in training.
                alone = batch.segments is None
                which = torch.zeros_like(batch.words) if alone else batch.segments
                vectors = words + self.segments(which)
            told = {"exact": True} if exact else {}
            above = self.context(vectors, batch.lengths, **told)
        is_apart = self.config.direction == "apart"
        # Both halves begin with the same word, as in the published models.
        layer_0 = torch.cat([words, words], dim=-1) if is_apart else words
        return Encoded((layer_0, *above), batch.mask, is_apart)

    def _is_only_read(self, batch: Batch) -> bool:
        """Whether nothing is learnt, and there is enough to read."""
        if self.training or torch.is_grad_enabled() or self.segments is not None:
            return False
        return batch.words.device.type == "cpu" and batch.words.numel() >= FEWEST_WORDS
