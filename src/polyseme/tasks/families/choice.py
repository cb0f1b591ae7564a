"""Which of several continuations, or answers: each is read with what goes before it and scored.

    text, choices   as many rows as there are choices, each compared with the text as pairs are
    or sequences    as many as there are choices, `<S> text </S> choice </S>` each, read as one by a
                    fine-tuned Transformer; a linear layer on one token's vector (GPT's way)
    softmax         over the scores of one example's choices

"Does Y answer X?" is the same with X as the text and all candidates as choices: their ranking.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from rich.console import Group, RenderableType
from torch import Tensor, nn
from typing_extensions import override

from polyseme.config import Settings
from polyseme.display import PrintableText, html_words, sentence, summary
from polyseme.errors import InputError
from polyseme.progress import SILENT, Progress
from polyseme.tasks.embeddings.embeddings import Embeddings, EmbeddingsConfig
from polyseme.tasks.embeddings.features import ByteDropout, InputDims, TaskInputs
from polyseme.tasks.families.classification import (
    PairClassifier,
    PairsConfig,
    check_sequences,
    one_token,
)
from polyseme.tasks.families.family import (
    Columns,
    ExampleFeatures,
    Network,
    TaskBatch,
    TaskFamily,
    Text,
    in_rows,
    prepare_sentences,
)
from polyseme.tasks.families.labels import (
    COLOURS,
    ContextConfig,
    check_finite,
    number_in_example,
    words_of,
)
from polyseme.tasks.measures import MeanScores, Values
from polyseme.tasks.texts import TextReader, WordTuple

MAX_CHOICES = 256
"""Of one example: all are in memory together."""
_LONGEST = 1_024  # words of each text: every one is compared with every other


class ChoiceConfig(Settings):
    """Which of several continuations or answers is right."""

    kind: Literal["choice"] = "choice"
    context: ContextConfig = ContextConfig()
    """Layers that read each text; one more of the same dimension reads what was compared."""


class SequenceChoiceConfig(Settings):
    """Which of several continuations or answers is right: each read with the text as one
    sequence (GPT, Radford et al. 2018)."""

    kind: Literal["sequence_choice"] = "sequence_choice"
    pooling: Literal["first", "last"] = "last"
    """Token whose vector is scored: the last, for a model that reads forward (GPT), or the first,
    for one that sees both sides (BERT's [CLS])."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the vector in training."""


@dataclass(frozen=True, slots=True)
class Choices:
    """A text, what may go with it, and which of these do."""

    text: Text
    choices: tuple[Text, ...]
    right: tuple[int, ...] = ()
    """From 0; none where it is not known."""

    def with_words(self, reader: TextReader, /) -> Self:
        """All texts as words."""
        text, *choices = (words_of(each, reader, _LONGEST) for each in (self.text, *self.choices))
        return replace(self, text=text, choices=tuple(choices))

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """The text, then the choices."""
        texts = (self.text, *self.choices)
        assert all(isinstance(each, tuple) for each in texts)
        return texts  # type: ignore[return-value]


class ChoiceNetwork(Network):
    """One score for a text with each of its choices."""

    @abstractmethod
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K): -inf where an example has fewer choices."""

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """-log p of all right choices together: (B,)"""
        log_p = self.scores(inputs, batch).float().log_softmax(dim=-1)
        return -log_p.masked_fill(~batch["is_right"], -torch.inf).logsumexp(dim=-1)

    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[list[float]]:
        """How probable each choice is."""
        scores = self.scores(inputs, batch).float()
        check_finite(scores[scores > -torch.inf])
        lengths = (scores > -torch.inf).sum(dim=-1).tolist()
        found = scores.softmax(dim=-1).tolist()
        return [row[:length] for row, length in zip(found, lengths, strict=True)]


def _by_example(scores: Tensor, owner: Tensor, num_examples: int) -> Tensor:
    """(N,) scores of choices, (N,) the example of each -> (B, K)"""
    number = number_in_example(owner)
    table = scores.new_full((num_examples, int(number.max()) + 1), -torch.inf)
    return table.index_put((owner, number), scores)


class ChoiceScorer(ChoiceNetwork):
    """Each choice compared with the text, word by word."""

    def __init__(self, config: ChoiceConfig, dims: InputDims) -> None:
        super().__init__()
        self.pair = PairClassifier(PairsConfig(context=config.context), dims, 1)

    @override
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K), of all first sentences, the texts, with all others."""
        owner, vectors = batch.example_of[len(batch) :], self.pair.context(inputs)
        texts, mask = slice(0, len(batch)), inputs.mask
        both = torch.cat([vectors[texts][owner], vectors[len(batch) :]])
        own = self.pair.compared(both, torch.cat([mask[texts][owner], mask[len(batch) :]]))[:, 0]
        return _by_example(own, owner, len(batch))


class SequenceChoiceScorer(ChoiceNetwork):
    """A linear layer on one token's vector of each sequence."""

    def __init__(self, config: SequenceChoiceConfig, dims: InputDims) -> None:
        super().__init__()
        self.config = config
        self.dropout = ByteDropout(config.dropout)
        self.out = nn.Linear(dims.input, 1)

    @override
    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, K)"""
        own = self.out(self.dropout(one_token(inputs, self.config.pooling)))[:, 0]
        return _by_example(own, batch.example_of, len(batch))


@dataclass(frozen=True, repr=False)
class PredictedChoice:
    """A text, its choices, and how probable each is."""

    text: str
    choices: tuple[str, ...]
    probabilities: tuple[float, ...]

    @property
    def ranking(self) -> list[int]:
        """The choices by number, from 0, the most probable first."""
        places = range(len(self.choices))
        return sorted(places, key=lambda place: (-self.probabilities[place], place))

    def __repr__(self) -> str:
        choice, share = self._ranked()[0]
        best = f"{sentence(choice.split())} {share}"
        return summary("Predicted", best, sentence(self.text.split()))

    def _repr_html_(self) -> str:
        best, *others = self._ranked()
        shown = [(self.text, "", ""), (*best, COLOURS[0]), *((*each, "") for each in others)]
        return html_words(shown)

    def __rich__(self) -> RenderableType:
        best, *others = (f"  {share}  {choice}" for choice, share in self._ranked())
        shown = PrintableText(self.text), PrintableText(best, "bold cyan")
        return Group(*shown, *map(PrintableText, others))

    def _ranked(self) -> list[tuple[str, str]]:
        return [(self.choices[n], f"{self.probabilities[n]:.2f}") for n in self.ranking]

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        told = {"text": self.text, "choices": list(self.choices)}
        return {**told, "probabilities": list(self.probabilities), "best": self.ranking[0]}


@dataclass(frozen=True, eq=False)
class Ranks(MeanScores):
    """Of N examples the rank of the first right choice, from 1, and how many choices there are."""

    ranks: npt.NDArray[np.int64]
    num_choices: npt.NDArray[np.int64]
    num_right: npt.NDArray[np.int64]

    def each(self, measure: str) -> Values:
        """1 / rank, or whether it is 1."""
        return 1 / self.ranks if measure == "mrr" else (self.ranks == 1).astype(np.float64)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Both measures, and the accuracy of chance."""
        row = {name: self.value(name) for name in Choice.measures}
        chance = float((self.num_right / self.num_choices).mean())
        return {"choices": [{**row, "by chance": chance, "examples": len(self)}]}


@dataclass(frozen=True)
class Choice(TaskFamily[Choices, PredictedChoice]):
    """Which of several."""

    example_types: ClassVar = (Choices,)
    measures: ClassVar = ("accuracy", "mrr")
    probabilities: ClassVar = "always"
    num_texts: ClassVar[None] = None
    """A text, then as many choices as there are."""
    config: ChoiceConfig | SequenceChoiceConfig

    def check(self, embeddings: EmbeddingsConfig) -> None:
        """Sequences have special tokens."""
        if isinstance(self.config, SequenceChoiceConfig):
            check_sequences(embeddings, self.config.kind)

    @override
    def prepare(
        self,
        examples: Sequence[Choices],
        embeddings: Embeddings,
        *,
        use_cache: bool = True,
        progress: Progress = SILENT,
    ) -> ExampleFeatures:
        """Every sentence by itself; or a sequence for each choice, the text before it."""
        if isinstance(self.config, ChoiceConfig):
            return prepare_sentences(examples, embeddings, use_cache=use_cache, progress=progress)
        texts = [example.sentences for example in examples]
        sequences, rows = in_rows([[(text, each) for each in choices] for text, *choices in texts])
        return ExampleFeatures(embeddings.prepare_sequences(sequences), rows)

    def encode(self, examples: Sequence[Choices], *, with_gold: bool) -> Columns:
        """`is_right` (B, K): whether each choice is."""
        if not with_gold:
            return {}
        places = [np.arange(len(example.choices)) for example in examples]
        pairs = zip(places, examples, strict=True)
        return {"is_right": [np.isin(place, example.right) for place, example in pairs]}

    def network(self, dims: InputDims) -> ChoiceNetwork:
        """Each choice compared with the text, or read with it."""
        if isinstance(self.config, SequenceChoiceConfig):
            return SequenceChoiceScorer(self.config, dims)
        return ChoiceScorer(self.config, dims)

    def predicted(self, example: Choices, found: Sequence[float]) -> PredictedChoice:
        """The texts, and how probable each choice is."""
        text, *choices = map(" ".join, example.sentences)
        return PredictedChoice(text, tuple(choices), tuple(found))

    def score(self, examples: Sequence[Choices], predicted: Sequence[PredictedChoice]) -> Ranks:
        """The rank of the first right choice."""
        ranks = [
            1 + min(each.ranking.index(number) for number in example.right)
            for example, each in zip(examples, predicted, strict=True)
        ]
        num_choices = [len(example.choices) for example in examples]
        num_right = [len(example.right) for example in examples]
        return Ranks(np.array(ranks), np.array(num_choices), np.array(num_right))

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Choices]:
        """The text and its choices."""
        if not 3 <= len(texts) <= 1 + MAX_CHOICES:
            raise InputError(
                f"This task chooses: give a text, then 2 to {MAX_CHOICES} choices, each quoted; "
                f"there are {len(texts)} texts in all."
            )
        text, *choices = (reader.words(each, _LONGEST) for each in texts)
        yield Choices(text, tuple(choices))
