"""One label for a text: layers with context, pooled in three ways, then a hidden layer.

Opinion, topic, kind of question; or the sense of one word, the target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from polyseme.config import Settings
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.families.family import Columns, TaskBatch, Text
from polyseme.tasks.families.labels import LabelFamily, LabelNetwork, words_of
from polyseme.tasks.families.layers import Attention, Context, ContextConfig, LabelHead, pool
from polyseme.tasks.texts import TextReader, WordTuple, find_target


class ClassificationConfig(Settings):
    """A label for a whole text: opinion, topic, kind of question."""

    kind: Literal["classification"] = "classification"
    has_target: bool = False
    """Whether the label is about one target word of the text, as a sense is."""
    context: ContextConfig = ContextConfig()
    """Layers that read the text."""


@dataclass(frozen=True, slots=True)
class Classified:
    """A text with one label, for the whole of it or for one word in it."""

    text: Text
    label: str
    target_index: int | None = None
    """The word the label is about, from 0; None where it is about the text."""

    def with_words(self, reader: TextReader, /) -> Self:
        """The text as words."""
        return replace(self, text=words_of(self.text, reader))

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """The one text."""
        assert isinstance(self.text, tuple)
        return (self.text,)


class Classifier(LabelNetwork):
    """The largest, the mean, and what attention finds, side by side."""

    def __init__(self, config: ClassificationConfig, dims: InputDims, labels: int) -> None:
        super().__init__()
        self.context = Context(config.context, dims, has_target=config.has_target)
        dim = self.context.dim
        self.attention = Attention(dim)
        self.head = LabelHead(3 * dim, config.context.dim, labels, config.context.dropout)

    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K)"""
        vectors = self.context(inputs, batch["target_index"])
        pooled = [pool(vectors, inputs.mask), self.attention(vectors, inputs.mask)]
        found: Tensor = self.head(torch.cat(pooled, dim=-1))
        return found


@dataclass(frozen=True)
class Classification(LabelFamily[Classified]):
    """One label for a text."""

    example_types: ClassVar = (Classified,)
    config: ClassificationConfig

    def encode(self, examples: Sequence[Classified], *, with_gold: bool) -> Columns:
        """`gold` (B,): the label by number. `target_index` (B,): -1 for none."""
        targets = [-1 if e.target_index is None else e.target_index for e in examples]
        columns = super().encode(examples, with_gold=with_gold)
        return {"target_index": np.array(targets, np.int64), **columns}

    def network(self, dims: InputDims) -> Classifier:
        """Layers, pooling, a hidden layer."""
        return Classifier(self.config, dims, len(self.labels.names))

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Classified]:
        """The text as a whole."""
        words = reader.words(texts[0])
        target, words = find_target(words) if self.config.has_target else (None, words)
        yield Classified(words, "", target)
