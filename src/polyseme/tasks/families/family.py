"""What a task family is: everything that one kind of task knows and the rest need not.

    example     what is read from a file: texts or words, and the gold answer
    encode      examples -> named arrays, what `losses` is to be told beside the vectors
    network     vectors -> losses in training, findings in use
    predicted   an example and what was found -> something to read, write and show
    score       examples and what was predicted -> numbers that add up to measures

The rest of the package reads files, makes vectors, gathers batches, trains, saves and compares, and
asks a family for the above. A family is one file; `families/__init__.py` has the one list of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from rich.console import RenderableType
from torch import Tensor, nn

from polyseme.data.batch import Integers
from polyseme.progress import SILENT, Progress
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig, FeatureDataset
from polyseme.tasks.embeddings.features import FeatureBatch, InputDims, TaskInputs
from polyseme.tasks.measures import ExampleScores
from polyseme.tasks.texts import TextReader, WordTuple

Text: TypeAlias = str | WordTuple
"""Running text, or its words."""
Column: TypeAlias = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]
"""Numbers of all examples: one array, a row an example; or an array of its own for each."""
Columns: TypeAlias = Mapping[str, Column]


class Example(Protocol):
    """What a task learns from and is measured on; a frozen dataclass of plain values.

    A text comes as words where its source has them marked, otherwise as a string to be split by the
    segmenter of the model that will read it: a task's words must be made as the model's were.
    """

    def with_words(self, reader: TextReader, /) -> Self:
        """The same example with its texts as words; what is words already stays as it is."""
        ...

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """All its sentences as words: one, two, or as many as a document has."""
        ...


class Predicted(Protocol):
    """What was found for an example; a frozen dataclass of plain values."""

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        ...

    def __rich__(self) -> RenderableType:
        """What a terminal shows."""
        ...

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        ...


ExampleT = TypeVar("ExampleT", bound=Example)
PredictedT = TypeVar("PredictedT", bound=Predicted)
_Part = TypeVar("_Part")


class ExampleFeatures(NamedTuple):
    """What embeddings are made from, and which of its rows belong to which example."""

    features: FeatureDataset
    rows: Integers  # (P, N)
    """`rows[p, n]`: the row of example n's sentence p; -1 where it has fewer."""


def prepare_sentences(
    examples: Sequence[Example],
    embeddings: Embeddings,
    *,
    use_cache: bool = True,
    progress: Progress = SILENT,
) -> ExampleFeatures:
    """A row for each sentence: all first ones, then all second ones, and so on."""
    sentences, rows = in_rows([example.sentences for example in examples])
    return ExampleFeatures(
        embeddings.prepare(sentences, use_cache=use_cache, progress=progress), rows
    )


def in_rows(found: Sequence[Sequence[_Part]]) -> tuple[list[_Part], Integers]:
    """The parts of some examples, all first ones first, and the row of each (P, N)."""
    num_parts = max(map(len, found))
    order = [(p, n) for p in range(num_parts) for n, each in enumerate(found) if p < len(each)]
    rows = np.full((num_parts, len(found)), -1, np.int64)
    rows[tuple(np.array(order).T)] = np.arange(len(order))
    return [found[n][p] for p, n in order], rows


@dataclass(frozen=True, eq=False)
class TaskBatch:
    """B examples gathered for one step, of one or more sentences each."""

    features: FeatureBatch
    """All first sentences, then all second ones, and so on."""
    example_of: Tensor  # (S,) int64
    """The example each sentence belongs to."""
    columns: Columns
    """What the family has encoded, of these examples."""
    num_examples: int
    tensors: Mapping[str, Tensor]
    """The columns, padded with 0 to the longest: (B, ...)."""
    step: int | None = None
    """The step of training it is for, from 0."""

    @classmethod
    def of(
        cls,
        features: FeatureBatch,
        example_of: Tensor,
        columns: Columns,
        *,
        num_examples: int,
        step: int | None = None,
    ) -> "TaskBatch":
        """Features and columns of some examples."""
        device = example_of.device
        tensors = {name: stack(column).to(device) for name, column in columns.items()}
        return cls(features, example_of, columns, num_examples, tensors, step)

    def __len__(self) -> int:
        return self.num_examples

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    @property
    def counts(self) -> Mapping[str, int]:
        """One loss for each example, however long."""
        return {"loss": len(self)}

    @property
    def num_words(self) -> int:
        """Words of all sentences."""
        return self.features.num_words

    def shard(self, rank: int, world_size: int) -> "TaskBatch":
        """Some of the examples, as if they had been gathered alone."""
        chosen = torch.arange(len(self)).tensor_split(world_size)[rank]
        mine = torch.isin(self.example_of, chosen.to(self.example_of.device))
        return TaskBatch.of(
            self.features.select(mine.nonzero()[:, 0]),
            self.example_of[mine] - int(chosen[0]),
            select(self.columns, chosen.numpy()),
            num_examples=len(chosen),
            step=self.step,
        )

    def to(self, device: str) -> "TaskBatch":
        """The same on another device."""
        tensors = {name: tensor.to(device) for name, tensor in self.tensors.items()}
        features, example_of = self.features.to(device), self.example_of.to(device)
        return replace(self, features=features, example_of=example_of, tensors=tensors)


def select(columns: Columns, chosen: Integers) -> Columns:
    """The columns of some examples."""
    return {
        name: column[chosen] if isinstance(column, np.ndarray) else [column[n] for n in chosen]
        for name, column in columns.items()
    }


def stack(column: Column) -> Tensor:
    """(B, ...) with 0 after the end of what is shorter than the longest."""
    if isinstance(column, np.ndarray):
        return torch.from_numpy(column)
    largest = np.max([each.shape for each in column], axis=0)
    whole = np.zeros((len(column), *largest), column[0].dtype)
    for number, each in enumerate(column):
        filled: tuple[int | slice, ...] = (number, *map(slice, each.shape))
        whole[filled] = each
    return torch.from_numpy(whole)


class Network(nn.Module, ABC):
    """From vectors to losses and findings; knows neither words nor labels by name."""

    @abstractmethod
    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B,): what training lowers, for each example; the gold is among `batch.tensors`."""

    @abstractmethod
    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[Any]:
        """What is found for each example, in numbers; refuses scores that are none
        (`layers.check_finite`)."""

    def probabilities(
        self,
        inputs: TaskInputs,
        batch: TaskBatch,
        found: Sequence[Any],
    ) -> list[Any]:
        """How probable what `decode` found is, for each example, in numbers; asked only where the
        family's `probabilities` are `on request`."""
        raise NotImplementedError


@dataclass(frozen=True)
class TaskFamily(ABC, Generic[ExampleT, PredictedT]):
    """A kind of task: its settings, and after `fit` or `restore` what the training data told."""

    example_types: ClassVar[tuple[type, ...]]
    """What it learns from."""
    reads_whole_files: ClassVar[bool] = False
    """Whether a file to be predicted is one text, and not one a line."""
    probabilities: ClassVar[Literal["always", "on request", "never"]] = "never"
    """Whether what is predicted tells how probable it is. On request where it costs something."""

    @property
    @abstractmethod
    def measures(self) -> tuple[str, ...]:
        """What it can be measured by, the customary one first; 1 is perfect."""

    @property
    def num_texts(self) -> int | None:
        """Texts of one example, as people write them; None where the number varies."""
        return 1

    def check(self, embeddings: EmbeddingsConfig) -> None:
        """Raise ValueError for embeddings the network cannot read."""

    def fit(self, examples: Sequence[ExampleT]) -> Self:  # noqa: ARG002
        """The family with what the training data tells once and for all, as which labels exist; by
        default it tells nothing."""
        return self

    def to_json(self) -> dict[str, Any]:
        """What `fit` found, for words.json."""
        return {}

    def restore(self, told: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """The reverse, from what words.json and the manifest's `metadata` tell; raises ValueError
        or KeyError if they do not."""
        return self

    def facts(self) -> list[tuple[str, str]]:
        """What a person wants to know of it: names and values."""
        return []

    def prepare(
        self,
        examples: Sequence[ExampleT],
        embeddings: Embeddings,
        *,
        use_cache: bool = True,
        progress: Progress = SILENT,
    ) -> ExampleFeatures:
        """What vectors will be made from; by default every sentence by itself."""
        return prepare_sentences(examples, embeddings, use_cache=use_cache, progress=progress)

    @abstractmethod
    def encode(self, examples: Sequence[ExampleT], *, with_gold: bool) -> Columns:
        """What the network is told beside vectors; without gold where it is to be predicted."""

    @abstractmethod
    def network(self, dims: InputDims) -> Network:
        """An untrained network; its weights depend on torch's seed."""

    @abstractmethod
    def predicted(self, example: ExampleT, found: Any) -> PredictedT:
        """What `Network.decode` found for an example, in the words of the task."""

    def with_probabilities(self, predicted: PredictedT, found: Any) -> PredictedT:  # noqa: ARG002
        """The same, with what `Network.probabilities` found for it."""
        return predicted

    @abstractmethod
    def score(self, examples: Sequence[ExampleT], predicted: Sequence[PredictedT]) -> ExampleScores:
        """How right predictions are, example by example."""

    def draw(
        self,
        folder: Path,  # noqa: ARG002
        examples: Sequence[ExampleT],  # noqa: ARG002
        predicted: Sequence[PredictedT],  # noqa: ARG002
    ) -> list[str]:
        """Pictures of its own for the report, if it has any; returns notes for the user."""
        return []

    @abstractmethod
    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[ExampleT]:
        """Examples without gold, from `num_texts` texts that a person wrote."""

    def join(self, predicted: Iterator[PredictedT]) -> Iterator[PredictedT]:
        """What was found for the examples of texts, one after the other, as findings of the texts;
        for a family that cuts a text into several examples which belong together."""
        return predicted
