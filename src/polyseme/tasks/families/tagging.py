"""A label for every word: layers with context, then a chain that chooses all labels together.

Names, parts of speech, chunks, semantic roles, Chinese words. Spans are written in the network's
own scheme, whatever the scheme of the data: IOB1, BIO, BIOES or BMES.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from rich.console import RenderableType
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.display import PrintableText, html_words, sentence, summary
from polyseme.tasks.crf import Crf
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.families.family import Columns, Network, TaskBatch
from polyseme.tasks.families.labels import (
    COLOURS,
    TERMINAL_COLOURS,
    Context,
    ContextConfig,
    FamilyWithLabels,
    Labels,
    check_finite,
)
from polyseme.tasks.measures import LABEL_MEASURES, Counts, count_spans, count_tags, draw_confusion
from polyseme.tasks.spans import OUTSIDE, Scheme, Transitions, convert, find_spans, transitions
from polyseme.tasks.texts import TextReader, WordTuple, find_target

MAX_TAGS = 4_096
"""Labels of words: every pair of them has a number of its own."""


class TaggingConfig(Settings):
    """Labels for words: names, parts of speech, chunks, roles; or for characters: Chinese words."""

    kind: Literal["tagging"] = "tagging"
    scheme: Scheme | Literal["none"] = "bio"
    """How spans are written inside the network, whatever the scheme of the data; what breaks the
    scheme's rules is never predicted. `none`: labels mark no spans, as parts of speech."""
    has_target: bool = False
    """Whether labels are about one target word of the sentence, as roles are about a predicate."""
    ignore_labels: tuple[str, ...] = ()
    """Kinds of span that are not counted, since they are given: V, the predicate."""
    context: ContextConfig = ContextConfig()
    """Layers that read the sentence."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A sentence with a label for every word."""

    words: WordTuple
    labels: tuple[str, ...]
    target_index: int | None = None
    """The predicate the labels are about, from 0; None where there is no such word."""

    def with_words(self, _reader: TextReader, /) -> Self:
        """It is words already."""
        return self

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """The one sentence."""
        return (self.words,)


class Tagger(Network):
    """Emissions by layers with context, transitions by a CRF."""

    def __init__(
        self,
        config: TaggingConfig,
        dims: InputDims,
        labels: int,
        allowed: Callable[[], Transitions] | None,
    ) -> None:
        super().__init__()
        self.context = Context(config.context, dims, has_target=config.has_target)
        self.emit = nn.Linear(self.context.dim, labels)
        self.crf = Crf(labels, allowed)

    def scores(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B, T, K)"""
        found: Tensor = self.emit(self.context(inputs, batch["target_index"]))
        return found

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """-log p of each sentence's labels: (B,)"""
        found: Tensor = self.crf(self.scores(inputs, batch), batch["gold"], inputs.mask)
        return found

    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[list[int]]:
        """The labels of each sentence's words, by number."""
        scores = self.scores(inputs, batch)
        check_finite(scores[inputs.mask])
        found = self.crf.decode(scores, inputs.mask)[0].tolist()
        lengths = batch.features.lengths.tolist()
        return [row[:length] for row, length in zip(found, lengths, strict=True)]

    def probabilities(
        self, inputs: TaskInputs, batch: TaskBatch, found: Sequence[Sequence[int]]
    ) -> list[list[float]]:
        """p(label) of each word for the labels found, whatever the labels of the other words."""
        marginals = self.crf.marginals(self.scores(inputs, batch), inputs.mask).cpu()
        return [
            marginals[row, torch.arange(len(labels)), list(labels)].tolist()
            for row, labels in enumerate(found)
        ]


@dataclass(frozen=True, repr=False)
class PredictedTags:
    """A sentence with a label for every word."""

    words: WordTuple
    labels: tuple[str, ...]
    marks_spans: bool = False
    target_index: int | None = None
    probabilities: tuple[float, ...] | None = None
    """Of each word's label, whatever the labels of the others; only if they were asked for."""

    def segments(self) -> list[str] | None:
        """The words that labels without a kind (B, M, E, S) divide all characters into; None where
        labels mark something else."""
        if not self.marks_spans or any(label == OUTSIDE or "-" in label for label in self.labels):
            return None
        return ["".join(self.words[s.start : s.stop]) for s in find_spans(self.labels)]

    def __repr__(self) -> str:
        if self.probabilities is None and (segments := self.segments()):
            return summary("Predicted", f"{len(segments)} words", sentence(segments))
        found = [
            f"{word}/{label}{told}"
            for (word, label), told in zip(self._pairs(), self._told(), strict=True)
            if told or label != OUTSIDE
        ]
        told = sentence(found) if found else f"{len(self.labels)} words, nothing found"
        return summary("Predicted", told, sentence(self.words))

    def _repr_html_(self) -> str:
        segments = self.segments() if self.probabilities is None else None
        if segments:
            return html_words((word, "", COLOURS[n % 2]) for n, word in enumerate(segments))
        kinds = sorted({_kind(label) for label in self.labels})
        return html_words(
            (word, "", "")
            if label == OUTSIDE
            else (word, f"{label}{told}", COLOURS[kinds.index(_kind(label)) % len(COLOURS)])
            for (word, label), told in zip(self._pairs(), self._told(), strict=True)
        )

    def __rich__(self) -> RenderableType:
        if self.probabilities is not None:
            return self._labels_coloured()
        if segments := self.segments():
            return PrintableText(" ".join(segments))
        return self._spans_coloured() if self.marks_spans else self._labels_coloured()

    def _labels_coloured(self) -> PrintableText:
        text = PrintableText()
        for (word, label), told in zip(self._pairs(), self._told(), strict=True):
            text.append(word)
            text.append(f"/{label}{told} ", style="cyan")
        return text

    def _told(self) -> list[str]:
        """The probability after each label, or nothing."""
        if self.probabilities is None:
            return [""] * len(self.labels)
        return [f" {probability:.2f}" for probability in self.probabilities]

    def _spans_coloured(self) -> PrintableText:
        text = PrintableText()
        spans = {span.start: span for span in find_spans(self.labels)}
        kinds = sorted({span.kind for span in spans.values()})
        place = 0
        while place < len(self.words):
            span = spans.get(place)
            if span is None:
                text.append(self.words[place] + " ")
                place += 1
                continue
            style = TERMINAL_COLOURS[kinds.index(span.kind) % len(TERMINAL_COLOURS)]
            text.append(" ".join(self.words[span.start : span.stop]), style=f"bold {style}")
            text.append(f"[{span.kind or OUTSIDE}] ", style=style)
            place = span.stop
        return text

    def _pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.words, self.labels, strict=True))

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        told: dict[str, Any] = {"words": list(self.words), "labels": list(self.labels)}
        if (segments := self.segments()) is not None:
            told["segments"] = segments
        if self.probabilities is not None:
            told["probabilities"] = list(self.probabilities)
        return told if self.target_index is None else {**told, "target_index": self.target_index}


@dataclass(frozen=True)
class Tagging(FamilyWithLabels[Tagged, PredictedTags]):
    """A label for every word."""

    example_types: ClassVar = (Tagged,)
    max_labels: ClassVar = MAX_TAGS
    config: TaggingConfig

    @property
    def measures(self) -> tuple[str, ...]:
        """F1 is customary for spans."""
        return ("f1", *LABEL_MEASURES) if self.marks_spans else LABEL_MEASURES

    @property
    def marks_spans(self) -> bool:
        """Whether labels stand for spans, as names have them."""
        return self.config.scheme != "none"

    def gold(self, example: Tagged) -> tuple[str, ...]:
        """The right labels, in the network's scheme."""
        if self.config.scheme == "none":
            return example.labels
        return tuple(convert(example.labels, self.config.scheme))

    def fit(self, examples: Sequence[Tagged]) -> Self:
        """With the labels of the training data."""
        found = (label for example in examples for label in self.gold(example))
        return replace(self, labels=Labels.of(found, most=MAX_TAGS))

    def encode(self, examples: Sequence[Tagged], *, with_gold: bool) -> Columns:
        """`gold` (B, T): labels by number. `target_index` (B,): -1 for none."""
        targets = [-1 if e.target_index is None else e.target_index for e in examples]
        columns: dict[str, Any] = {"target_index": np.array(targets, np.int64)}
        if with_gold:
            columns["gold"] = [self.labels.encode(self.gold(example)) for example in examples]
        return columns

    def network(self, dims: InputDims) -> Tagger:
        """The layers, and the CRF with the rules of the scheme."""
        names, scheme = self.labels.names, self.config.scheme
        # Worked out pair by pair, which for labels of a folder that nobody has checked yet may take
        # long: only once its weights were found to be of as many labels.
        allowed = None if scheme == "none" else partial(transitions, names, scheme)
        return Tagger(self.config, dims, len(names), allowed)

    def predicted(self, example: Tagged, found: Sequence[int]) -> PredictedTags:
        """The words and their labels."""
        labels = self.labels.decode(found)
        return PredictedTags(example.words, labels, self.marks_spans, example.target_index)

    def with_probabilities(self, predicted: PredictedTags, found: Sequence[float]) -> PredictedTags:
        """That of each word's label."""
        return replace(predicted, probabilities=tuple(found))

    def score(self, examples: Sequence[Tagged], predicted: Sequence[PredictedTags]) -> Counts:
        """Counts of spans, or of words where labels mark none."""
        gold, found = [self.gold(each) for each in examples], [each.labels for each in predicted]
        if self.marks_spans:
            return count_spans(gold, found, ignore_labels=self.config.ignore_labels)
        return count_tags(gold, found)

    def draw(
        self, folder: Path, examples: Sequence[Tagged], predicted: Sequence[PredictedTags]
    ) -> list[str]:
        """Which kinds of label were taken for which, word by word."""
        kind = _kind if self.marks_spans else str
        gold = [kind(label) for example in examples for label in self.gold(example)]
        return draw_confusion(folder, gold, [kind(x) for each in predicted for x in each.labels])

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Tagged]:
        """Every sentence of a text."""
        for words in reader.sentences(texts[0]):
            target, found = find_target(words) if self.config.has_target else (None, words)
            yield Tagged(found, (OUTSIDE,) * len(found), target)


def _kind(label: str) -> str:
    return label.partition("-")[2] or label
