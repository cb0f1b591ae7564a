"""Layer 0 and the layers with context (the contextualizer), as one module that gives `Encoded`.

    in   vectors (B, T, D), lengths (B,)   layer 0 of every word
    out  L times (B, T, D)                 one for each layer with context

A new kind of contextualizer is a file of its own and a line in each of the two unions here. Its
settings have `dim`, `num_layers` and `max_length`; its module says which layer each parameter
belongs to, so that fine-tuning can train layers one by one.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.encoders.encoded import Direction, Encoded
from polyseme.encoders.feedforward import FeedForward, FeedForwardConfig
from polyseme.encoders.inputs import (
    CharacterInputConfig,
    InputConfig,
    TokenEmbedder,
    WordCharacterInputConfig,
    WordInputConfig,
)
from polyseme.encoders.lstm import MIN_WORDS, Lstm, LstmConfig, run_packed
from polyseme.encoders.transformer import Transformer, TransformerConfig


class NoContextualizerConfig(Settings):
    """No layer above the word itself: static vectors, as word2vec's."""

    kind: Literal["none"] = "none"
    dim: int = Field(300, ge=1, le=65_536)
    """Dimension."""
    num_layers: ClassVar[int] = 0
    max_length: ClassVar[None] = None
    """Any length: words do not see each other."""


ContextualizerConfig: TypeAlias = Annotated[
    LstmConfig | TransformerConfig | FeedForwardConfig | NoContextualizerConfig,
    Field(discriminator="kind"),
]
Contextualizer: TypeAlias = Lstm | Transformer | FeedForward


def build_contextualizer(
    config: ContextualizerConfig, direction: Direction
) -> Contextualizer | None:
    """Untrained layers; None if there are none. Weights depend on torch's seed."""
    match config:
        case LstmConfig():
            return Lstm(config, direction)
        case TransformerConfig():
            return Transformer(config, direction)
        case FeedForwardConfig():
            return FeedForward(config, direction)
        case NoContextualizerConfig():
            return None


class EncoderConfig(Settings):
    """Words in, vectors out."""

    input: InputConfig
    """Where a word's own vector, layer 0, comes from."""
    contextualizer: ContextualizerConfig
    """The layers that see the sentence."""
    direction: Direction = "separate"
    """Which words they see: those before (forward: causal, as GPT), those before and those after in
    two stacks (separate: a biLM, as ELMo), or both sides in every layer (joint: bidirectional, as
    BERT)."""
    segments: bool = False
    """Whether the first and second sentence of a pair are distinguished by a learned vector."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on layer 0 in training."""

    @model_validator(mode="after")
    def _halves_fit(self) -> "EncoderConfig":
        is_halved = self.direction == "joint" and isinstance(self.contextualizer, LstmConfig)
        if is_halved and self.contextualizer.dim % 2:
            raise ValueError(
                "an LSTM with direction 'joint' gives half of proj_size each way, and "
                f"{self.contextualizer.dim} is odd"
            )
        return self

    @property
    def word_dim(self) -> int:
        """Dimension of the input's word embeddings; 0 without any."""
        match self.input:
            case WordInputConfig():
                return self.input.dim
            case WordCharacterInputConfig():
                return self.input.word_dim
            case CharacterInputConfig():
                return 0

    @property
    def widest_filter(self) -> int:
        """Characters that must be there to be read at a time; 0 where none are read."""
        match self.input:
            case WordInputConfig():
                return 0
            case WordCharacterInputConfig():
                return self.input.characters.widest
            case CharacterInputConfig():
                return self.input.widest

    @property
    def num_layers(self) -> int:
        """Vectors for each word that come out: layer 0 and those with context."""
        return 1 + self.contextualizer.num_layers

    @property
    def is_separate(self) -> bool:
        """Whether a vector has two halves, one for each way of reading."""
        return self.direction == "separate"

    @property
    def output_dim(self) -> int:
        """Output dimension of each layer."""
        return self.contextualizer.dim * (2 if self.is_separate else 1)


class Encoder(nn.Module):
    """A batch in, `Encoded` out. The same module trains, embeds and serves."""

    def __init__(self, config: EncoderConfig, *, vocab_size: int, num_chars: int) -> None:
        super().__init__()
        self.config = config
        dim = config.contextualizer.dim
        self.inputs = TokenEmbedder(
            config.input, vocab_size=vocab_size, num_chars=num_chars, dim=dim
        )
        self.segment_embedding = nn.Embedding(2, dim) if config.segments else None
        self.dropout = nn.Dropout(config.dropout)
        self.contextualizer = build_contextualizer(config.contextualizer, config.direction)

    def layer_of(self, parameter: str) -> int:
        """The layer that a parameter makes, by its name: 0 for those of a word's own vector."""
        part, _, rest = parameter.partition(".")
        if self.contextualizer is None or part != "contextualizer":
            return 0
        return self.contextualizer.layer_of(rest)

    def forward(self, batch: Batch) -> Encoded:
        """Layer 0 and every layer above it."""
        distinct = self.inputs(batch.ids, batch.char_ids)  # (U, D)
        return self.contextualize(distinct, batch)

    def contextualize(
        self, distinct: Tensor, batch: Batch, *, special_tokens: bool = True
    ) -> Encoded:
        """From layer 0 of the batch's distinct words (U, D), wherever it comes from.

        Without `special_tokens`, nothing is promised of the vectors at the first and last position
        of a sentence: BOS and EOS.
        """
        words = self.dropout(functional.embedding(batch.words, distinct))  # (B, T, D)
        above: tuple[Tensor, ...] = ()
        if isinstance(self.contextualizer, Lstm) and self._is_only_read(batch):
            read = (distinct, batch.words, batch.lengths)
            above = run_packed(self.contextualizer, *read, special_tokens=special_tokens)
        elif self.contextualizer is not None:
            vectors = words
            if self.segment_embedding is not None:
                # A sentence alone is a first sentence, as it was in training.
                alone = batch.segments is None
                which = torch.zeros_like(batch.words) if alone else batch.segments
                vectors = words + self.segment_embedding(which)
            above = self.contextualizer(vectors, batch.lengths)
        is_separate = self.config.is_separate
        # Both halves begin with the same word, as in the published models.
        layer_0 = torch.cat([words, words], dim=-1) if is_separate else words
        return Encoded((layer_0, *above), batch.mask, is_separate)

    def _is_only_read(self, batch: Batch) -> bool:
        """Whether nothing is learnt, and there is enough to read."""
        if self.training or torch.is_grad_enabled() or self.segment_embedding is not None:
            return False
        return batch.words.device.type == "cpu" and batch.words.numel() >= MIN_WORDS
