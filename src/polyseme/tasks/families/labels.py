"""Labels, and what families that give one label to each example share.

in   examples with a label, whatever their texts
out  numbers for a network, the label of a network's number, counts of what was right

What networks of several families are made of: layers that read a sentence, and pooling.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from pydantic import Field
from rich.console import RenderableType
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.data.batch import Integers
from polyseme.display import PrintableText, html_words, sentence, summary
from polyseme.encoders.lstm import Lstm, LstmConfig
from polyseme.errors import InputError, ModelError
from polyseme.tasks.embeddings.features import ByteDropout, InputDims, TaskInputs
from polyseme.tasks.families.family import (
    Columns,
    Example,
    ExampleT,
    Network,
    PredictedT,
    TaskBatch,
    TaskFamily,
    Text,
)
from polyseme.tasks.measures import LABEL_MEASURES, Counts, count_labels, draw_confusion
from polyseme.tasks.texts import TextReader, WordTuple
from polyseme.text.preprocessing import UnfitTextError

_TARGET_DIM = 16
LARGEST_SCORE = 1e8
"""A network in training gives scores below 100; beyond this, float32 tells no two labels apart."""


class ContextConfig(Settings):
    """Layers that read a sentence both ways."""

    num_layers: int = Field(1, ge=1, le=16)
    """How many; from the second on, each adds to what the one below gave."""
    dim: int = Field(256, ge=2, le=65_536, multiple_of=2)
    """Output dimension of a layer, half of it from each direction."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on each layer's outputs in training."""


class Context(nn.Module):
    """The layers."""

    def __init__(self, config: ContextConfig, dims: InputDims, *, has_target: bool = False) -> None:
        super().__init__()
        self.target_embedding = nn.Embedding(2, _TARGET_DIM) if has_target else None
        read = dims.input + (_TARGET_DIM if has_target else 0)
        one = LstmConfig(num_layers=1, proj_size=config.dim)
        self.layers = nn.ModuleList([Lstm(one, "joint", input_size=read)])
        read = config.dim + dims.after_first_layer
        for _ in range(1, config.num_layers):
            self.layers.append(Lstm(one, "joint", input_size=read))
            read = config.dim
        self.dropout = ByteDropout(config.dropout)
        self.dim = config.dim + dims.output
        if config.num_layers == 1:  # what is inserted after the first layer stays in the output
            self.dim += dims.after_first_layer

    def forward(self, inputs: TaskInputs, target_index: Tensor | None = None) -> Tensor:
        """`target_index` (B,): the word the task is about, -1 for none."""
        lengths = inputs.mask.sum(dim=1)
        vectors = inputs.input
        if self.target_embedding is not None:
            is_target = _is_target(inputs.mask, target_index)
            vectors = torch.cat([vectors, self.target_embedding(is_target)], dim=-1)
        for number, layer in enumerate(self.layers):
            [found] = layer(vectors, lengths)
            found = self.dropout(found)
            vectors = found if number == 0 else found + vectors[..., : found.shape[-1]]
            if number == 0 and inputs.after_first_layer is not None:
                vectors = torch.cat([vectors, inputs.after_first_layer], dim=-1)
        if inputs.output is not None:
            vectors = torch.cat([vectors, inputs.output], dim=-1)
        return vectors


def _is_target(mask: Tensor, target_index: Tensor | None) -> Tensor:
    """(B, T) 1 at the target word, 0 at all others."""
    if target_index is None:
        return torch.zeros_like(mask, dtype=torch.int64)
    place = torch.arange(mask.shape[1], device=mask.device)
    return (place == target_index[:, None]).long()


def select_rows(inputs: TaskInputs, rows: slice) -> TaskInputs:
    """Some rows of the inputs, without padding that none of them needs."""
    mask = inputs.mask[rows]
    longest = int(mask.sum(dim=1).max())

    def selected(vectors: Tensor | None) -> Tensor | None:
        return None if vectors is None else vectors[rows, :longest]

    own = inputs.input[rows, :longest]
    after, output = selected(inputs.after_first_layer), selected(inputs.output)
    return TaskInputs(own, mask[:, :longest], after, output)


def number_in_example(owner: Tensor) -> Tensor:
    """(S,) -> (S,): how many rows of the same example stand before each."""
    return (owner[:, None] == owner[None, :]).tril().sum(dim=1) - 1


def pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D), (B, T) -> (B, 2 D): the largest of each number, and the mean."""
    lengths = mask.sum(dim=1, keepdim=True)
    largest = vectors.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
    mean = (vectors * mask[..., None]).sum(dim=1) / lengths
    return torch.cat([largest, mean], dim=-1)


class Attention(nn.Module):
    """The words that matter most, weighted by a learned query."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, dim)
        self.query = nn.Linear(dim, 1, bias=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), (B, T) -> (B, D)"""
        asked: Tensor = self.query(self.hidden(vectors).tanh())[..., 0]
        weights = asked.masked_fill(~mask, -torch.inf).softmax(dim=1)  # (B, T)
        return (weights[..., None] * vectors * mask[..., None]).sum(dim=1)


class LabelHead(nn.Module):
    """From one vector to a score for each label, through a hidden layer."""

    def __init__(self, read: int, hidden: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(read, hidden)
        self.out = nn.Linear(hidden, labels)
        self.dropout = ByteDropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """(B, D) -> (B, K)"""
        hidden = self.hidden(self.dropout(vectors)).relu()
        scores: Tensor = self.out(self.dropout(hidden))
        return scores


def check_finite(scores: Tensor) -> None:
    """Refuse scores of weights that are damaged: the best of what are no numbers would be a finding
    like any other."""
    if not scores.isfinite().all() or scores.abs().amax() > LARGEST_SCORE:
        raise ModelError(
            "The task's scores are not finite numbers, or larger than any that training gives "
            f"({LARGEST_SCORE:g}): its weights are damaged. Copy the whole folder again "
            "from its source, or train again."
        )


MAX_LABELS = 65_536
"""Labels of texts."""
MOST_PROBABLE = 256
"""Of more labels, only so many are told with their probabilities."""
COLOURS = ("lightcyan", "lavender", "honeydew", "lemonchiffon", "aliceblue", "mistyrose")
"""Of labels, in HTML."""
TERMINAL_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")


@dataclass(frozen=True)
class Labels:
    """Every label that can be predicted, in the order of their numbers."""

    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels: Iterable[str], *, most: int = MAX_LABELS) -> "Labels":
        """Those of the training data."""
        found = set(labels)
        if len(found) < 2:
            raise InputError(f"The training examples have fewer than two labels: {sorted(found)}.")
        _check_number(found, most)
        return cls(tuple(sorted(found)))

    @classmethod
    def from_json(cls, names: Sequence[str], *, most: int = MAX_LABELS) -> "Labels":
        """Those that a task's folder tells."""
        if not all(isinstance(name, str) for name in names):
            raise ValueError("a label is not text")
        _check_number(names, most)
        return cls(tuple(names))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each."""
        return {name: number for number, name in enumerate(self.names)}

    def encode(self, labels: Iterable[str]) -> Integers:
        """Labels by number."""
        return np.array([self.numbers[label] for label in labels], np.int64)

    def decode(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Labels by name."""
        return tuple(self.names[number] for number in numbers)

    def facts(self) -> list[tuple[str, str]]:
        """The first of them."""
        more = f" and {len(self.names) - 8:,} more" if len(self.names) > 8 else ""
        return [("labels", " ".join(self.names[:8]) + more)]


def _check_number(labels: Collection[str], most: int) -> None:
    if not 2 <= len(labels) <= most:
        raise InputError(
            f"The data has {len(labels):,} labels; a network of this kind needs 2 to {most:,}. Did "
            "you name the column with the labels?"
        )


def words_of(text: Text, reader: TextReader, longest: int | None = None) -> WordTuple:
    """A text as words; what is words already stays as it is. One of more than `longest` words is
    unfit, and counted as such."""
    words = reader.split(text) if isinstance(text, str) else text
    if longest is not None and len(words) > longest:
        raise UnfitTextError("too-long")
    return words


@dataclass(frozen=True, repr=False)
class PredictedLabel:
    """A text or a pair with its label."""

    texts: tuple[str, ...]
    """What was given, its words with spaces between them."""
    label: str
    probabilities: Mapping[str, float] | None = None
    """Of each label, the most probable first; only if they were asked for."""

    def __repr__(self) -> str:
        told = f"{self.label}{self._probability()}"
        return summary("Predicted", told, *map(sentence, map(str.split, self.texts)))

    def _repr_html_(self) -> str:
        shown = (self.label, self._probability().strip(), COLOURS[0])
        return html_words([shown, *((t, "", "") for t in self.texts)])

    def __rich__(self) -> RenderableType:
        text = PrintableText()
        text.append(f"{self.label}{self._probability()}  ", style="bold cyan")
        return text.append(" | ".join(self.texts))

    def _probability(self) -> str:
        return "" if self.probabilities is None else f" {self.probabilities[self.label]:.2f}"

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        told: dict[str, Any] = {"texts": list(self.texts), "label": self.label}
        if self.probabilities is not None:
            told["probabilities"] = dict(self.probabilities)
        return told


class LabelNetwork(Network):
    """Scores of K labels, of which the highest is found."""

    @abstractmethod
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K)"""

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """Cross-entropy: (B,)"""
        scores = self.scores(inputs, batch).float()
        return functional.cross_entropy(scores, batch["gold"], reduction="none")

    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[int]:
        """The label of each example, by number."""
        scores = self.scores(inputs, batch)
        check_finite(scores)
        found: list[int] = scores.argmax(dim=-1).tolist()
        return found

    def probabilities(
        self,
        inputs: TaskInputs,
        batch: TaskBatch,
        found: Sequence[Any],  # noqa: ARG002 (all labels are told, not only those found)
    ) -> list[dict[int, float]]:
        """Of labels by number, the most probable first."""
        shares = self.scores(inputs, batch).double().softmax(dim=-1)
        values, numbers = shares.topk(min(MOST_PROBABLE, shares.shape[-1]), dim=-1)
        pairs = zip(numbers.tolist(), values.tolist(), strict=True)
        return [dict(zip(*row, strict=True)) for row in pairs]


class LabelledExample(Example, Protocol):
    """An example with one label."""

    @property
    def label(self) -> str:
        """The gold label."""
        ...


LabelledT = TypeVar("LabelledT", bound=LabelledExample)


@dataclass(frozen=True)
class FamilyWithLabels(TaskFamily[ExampleT, PredictedT], Generic[ExampleT, PredictedT]):
    """What families have in common whose networks choose among the labels of the training data."""

    probabilities: ClassVar = "on request"
    max_labels: ClassVar[int] = MAX_LABELS
    labels: Labels = field(default=Labels(), kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """The labels."""
        return {"labels": list(self.labels.names)}

    def restore(self, told: Mapping[str, Any]) -> Self:
        """The reverse."""
        return replace(self, labels=Labels.from_json(told["labels"], most=self.max_labels))

    def facts(self) -> list[tuple[str, str]]:
        """The labels."""
        return self.labels.facts()


@dataclass(frozen=True)
class LabelFamily(FamilyWithLabels[LabelledT, PredictedLabel], Generic[LabelledT]):
    """One label for each example; what is read and how is the families' own."""

    measures: ClassVar[tuple[str, ...]] = LABEL_MEASURES

    def fit(self, examples: Sequence[LabelledT]) -> Self:
        """With the labels of the training data."""
        return replace(self, labels=Labels.of(example.label for example in examples))

    def encode(self, examples: Sequence[LabelledT], *, with_gold: bool) -> Columns:
        """`gold` (B,): the label by number."""
        if not with_gold:
            return {}
        return {"gold": self.labels.encode(example.label for example in examples)}

    def predicted(self, example: LabelledT, found: int) -> PredictedLabel:
        """The texts and their label."""
        return PredictedLabel(tuple(map(" ".join, example.sentences)), self.labels.names[found])

    def with_probabilities(
        self, predicted: PredictedLabel, found: Mapping[int, float]
    ) -> PredictedLabel:
        """Those of all labels."""
        named = {self.labels.names[number]: share for number, share in found.items()}
        return replace(predicted, probabilities=named)

    def score(self, examples: Sequence[LabelledT], predicted: Sequence[PredictedLabel]) -> Counts:
        """Counts of labels."""
        return count_labels(*_both(examples, predicted))

    def draw(
        self, folder: Path, examples: Sequence[LabelledT], predicted: Sequence[PredictedLabel]
    ) -> list[str]:
        """Which labels were taken for which."""
        return draw_confusion(folder, *_both(examples, predicted))


def _both(
    examples: Sequence[LabelledExample], predicted: Sequence[PredictedLabel]
) -> tuple[list[str], list[str]]:
    return [example.label for example in examples], [each.label for each in predicted]
