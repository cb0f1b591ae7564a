"""One label for two sentences, each read in the light of the other (ESIM, Chen et al. 2017).

Each word looks for what answers it in the other sentence; the word, what it found, their difference
and their product are read once more, and pooled.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from typing_extensions import override

from polyseme.config import Settings
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.tasks.embeddings.dropout import ByteDropout
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.families.family import TaskBatch, Text
from polyseme.tasks.families.labels import LabelFamily, LabelNetwork, words_of
from polyseme.tasks.families.layers import Context, ContextConfig, LabelHead, pool
from polyseme.tasks.texts import LONGEST_OF_PAIR, TextReader, WordTuple


class PairsConfig(Settings):
    """How two sentences stand to each other: entailment, paraphrase, question and answer."""

    kind: Literal["pairs"] = "pairs"
    context: ContextConfig = ContextConfig()
    """Layers that read each sentence; one more of the same dimension reads what was compared."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Two texts and how they stand to each other."""

    first: Text
    second: Text
    label: str

    def with_words(self, reader: TextReader, /) -> Self:
        """Both texts as words."""
        first = words_of(self.first, reader, LONGEST_OF_PAIR)
        second = words_of(self.second, reader, LONGEST_OF_PAIR)
        return replace(self, first=first, second=second)

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """Both texts."""
        assert isinstance(self.first, tuple)
        assert isinstance(self.second, tuple)
        return self.first, self.second


class PairClassifier(LabelNetwork):
    """Attends and compares."""

    def __init__(self, config: PairsConfig, dims: InputDims, labels: int) -> None:
        super().__init__()
        dim, share = config.context.dim, config.context.dropout
        self.context = Context(config.context, dims)
        self.compare = nn.Linear(4 * self.context.dim, dim)
        self.compose = Lstm(LstmConfig(num_layers=1, proj_size=dim), "joint")
        self.dropout = ByteDropout(share)
        self.head = LabelHead(4 * dim, dim, labels, share)

    @override
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K) from 2 B sentences: all first ones, then all second ones."""
        return self.compared(self.context(inputs), inputs.mask)

    def compared(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(2 B, T, D), (2 B, T) -> (B, K)"""
        found = attend(vectors, mask)
        both = torch.cat([vectors, found, vectors - found, vectors * found], dim=-1)
        compared = self.dropout(self.compare(both).relu()) * mask[..., None]
        [composed] = self.compose(compared, mask.sum(dim=1))
        first, second = pool(self.dropout(composed), mask).chunk(2)
        scores: Tensor = self.head(torch.cat([first, second], dim=-1))
        return scores


def attend(vectors: Tensor, mask: Tensor) -> Tensor:
    """(2 B, T, D), (2 B, T) -> (2 B, T, D): for each word the mean of the other sentence's words,
    weighted by how well they go with it. Padding is never found."""
    other = torch.cat(vectors.chunk(2)[::-1])
    is_there = torch.cat(mask.chunk(2)[::-1])
    likeness = torch.bmm(vectors, other.transpose(1, 2))  # (2 B, T, T)
    weights = likeness.masked_fill(~is_there[:, None, :], -torch.inf).softmax(dim=-1)
    return torch.bmm(weights, other * is_there[..., None])


@dataclass(frozen=True)
class Pairs(LabelFamily[Paired]):
    """One label for two texts."""

    example_types: ClassVar = (Paired,)
    config: PairsConfig

    @property
    def num_texts(self) -> int:
        """Two."""
        return 2

    def network(self, dims: InputDims) -> PairClassifier:
        """Attention between the texts."""
        return PairClassifier(self.config, dims, len(self.labels.names))

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Paired]:
        """The two texts."""
        first, second = (reader.words(text, LONGEST_OF_PAIR) for text in texts)
        yield Paired(first, second, "")
