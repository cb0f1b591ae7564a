"""One label for a text, or for two sentences.

A text (opinion, topic, kind of question; or the sense of one word, the target): layers with
context, pooled in three ways, then a hidden layer.

Two sentences, each read in the light of the other (ESIM, Chen et al. 2017): each word looks for
what answers it in the other sentence; the word, what it found, their difference and their product
are read once more, and pooled.

A text or a pair read as `<S> a </S> b </S>`, as GPT and BERT are fine-tuned: all the reading is the
model's; here is only a linear layer on the vector of one special token.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from polyseme.config import Settings
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.progress import SILENT, Progress
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig
from polyseme.tasks.embeddings.features import ByteDropout, InputDims, TaskInputs
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.families.family import Columns, ExampleFeatures, TaskBatch, Text
from polyseme.tasks.families.labels import (
    Attention,
    Context,
    ContextConfig,
    LabelFamily,
    LabelHead,
    LabelNetwork,
    pool,
    words_of,
)
from polyseme.tasks.texts import LONGEST_OF_PAIR, LONGEST_TEXT, TextReader, WordTuple, find_target


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


class PairsConfig(Settings):
    """How two sentences are related: entailment, paraphrase, question and answer."""

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
    num_texts: ClassVar = 2
    config: PairsConfig

    def network(self, dims: InputDims) -> PairClassifier:
        """Attention between the texts."""
        return PairClassifier(self.config, dims, len(self.labels.names))

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Paired]:
        """The two texts."""
        first, second = (reader.words(text, LONGEST_OF_PAIR) for text in texts)
        yield Paired(first, second, "")


class SequencePairConfig(Settings):
    """A sequence pair, or a single text: one sequence, read by a fine-tuned model alone."""

    kind: Literal["sequence_pair"] = "sequence_pair"
    pooling: Literal["first", "last"] = "last"
    """Which token's vector represents the sequence: the last (EOS), which has read everything
    (GPT), or the first (BOS), for a model that sees both sides (BERT's [CLS])."""
    symmetric: bool = False
    """Whether two texts are read in both orders and the vectors added: for similarity, which has
    no order."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the vector in training."""


class SequencePairClassifier(LabelNetwork):
    """A linear layer on one token's vector."""

    def __init__(self, config: SequencePairConfig, dims: InputDims, labels: int) -> None:
        super().__init__()
        self.config = config
        self.dropout = ByteDropout(config.dropout)
        self.out = nn.Linear(dims.input, labels)

    @override
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K) from sequences with their special tokens; in both orders, if symmetric."""
        pooled = one_token(inputs, self.config.pooling)
        if self.config.symmetric:
            there, back = pooled.chunk(2)
            pooled = there + back
        scores: Tensor = self.out(self.dropout(pooled))
        return scores


def one_token(inputs: TaskInputs, pooling: Literal["first", "last"]) -> Tensor:
    """(N, D) the vector of the first or the last token of each sequence."""
    rows = torch.arange(len(inputs.mask), device=inputs.mask.device)
    ends = inputs.mask.sum(dim=1) - 1
    return inputs.input[rows, ends if pooling == "last" else torch.zeros_like(ends)]


def check_sequences(embeddings: EmbeddingsConfig, kind: str) -> None:
    """Only a fine-tuned model has vectors for special tokens."""
    if embeddings.words or not isinstance(embeddings.model, FineTunedConfig):
        raise ValueError(
            f"a network of kind '{kind}' reads a fine-tuned model and nothing else: set "
            "embeddings.model.kind = 'finetuned' and leave out embeddings.words"
        )


@dataclass(frozen=True)
class SequencePair(LabelFamily[Classified | Paired]):
    """One label for a text or a pair, whichever the training data has."""

    example_types: ClassVar = (Classified, Paired)
    config: SequencePairConfig
    is_on_pairs: bool = field(default=False, kw_only=True)

    @property
    def num_texts(self) -> int:
        """One, or two."""
        return 2 if self.is_on_pairs else 1

    def check(self, embeddings: EmbeddingsConfig) -> None:
        """Only a fine-tuned model has vectors for special tokens."""
        check_sequences(embeddings, self.config.kind)

    def fit(self, examples: Sequence[Classified | Paired]) -> Self:
        """With the labels of the training data, and whether it is on pairs."""
        return replace(super().fit(examples), is_on_pairs=isinstance(examples[0], Paired))

    def to_json(self) -> dict[str, Any]:
        """The same."""
        return {**super().to_json(), "is_on_pairs": self.is_on_pairs}

    def restore(self, told: Mapping[str, Any]) -> Self:
        """The reverse."""
        return replace(super().restore(told), is_on_pairs=told["is_on_pairs"])

    @override
    def prepare(
        self,
        examples: Sequence[Classified | Paired],
        embeddings: Embeddings,
        *,
        use_cache: bool = True,
        progress: Progress = SILENT,
    ) -> ExampleFeatures:
        """A sequence for each example; then, if symmetric, each the other way round."""
        sequences = [example.sentences for example in examples]
        reverse = [row[::-1] for row in sequences] if self.config.symmetric else []
        features = embeddings.prepare_sequences([*sequences, *reverse])
        return ExampleFeatures(features, np.arange(len(features)).reshape(-1, len(examples)))

    def network(self, dims: InputDims) -> SequencePairClassifier:
        """A linear layer."""
        return SequencePairClassifier(self.config, dims, len(self.labels.names))

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Classified | Paired]:
        """The text, or the two."""
        longest = LONGEST_OF_PAIR if self.is_on_pairs else LONGEST_TEXT
        words = [reader.words(text, longest) for text in texts]
        yield Paired(words[0], words[1], "") if self.is_on_pairs else Classified(words[0], "")
