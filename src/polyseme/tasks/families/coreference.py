"""Coreference: which words of a document speak of the same person, place or thing.

A document is read whole, its clusters of mentions found together. A text of any length is read in
windows of some hundred words that overlap; clusters of two windows are joined where they share
mentions. So a novel takes no more memory than a chapter, but who is gone for longer than the
overlap comes back as someone new.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from rich.console import RenderableType

from polyseme.config import Settings
from polyseme.display import html_spans, sentence, summary
from polyseme.errors import InputError
from polyseme.printable import PrintableText
from polyseme.tasks.clusters import (
    CLUSTER_MEASURES,
    Clusters,
    ClusterScores,
    Mention,
    load_assignment,
    score_clusters,
)
from polyseme.tasks.embeddings.features import InputDims
from polyseme.tasks.families.antecedents import CoreferenceResolver, SpansConfig
from polyseme.tasks.families.family import Columns, TaskFamily
from polyseme.tasks.families.labels import COLOURS, TERMINAL_COLOURS
from polyseme.tasks.families.layers import ContextConfig
from polyseme.tasks.texts import TextReader, WordTuple

LONGEST_DOCUMENT = 8_192
"""Words of a document to learn from or to measure on: its spans are in memory together."""
MAX_GENRES = 1_024
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")


class WindowsConfig(Settings):
    """How a text to be predicted is cut."""

    words: int = Field(1_024, ge=16, le=LONGEST_DOCUMENT)
    """Words that are read together, at most, but for a sentence that is longer."""
    overlap: int = Field(384, ge=0, le=LONGEST_DOCUMENT)
    """Words of whole sentences that are read again with the next window, at most."""

    @model_validator(mode="after")
    def _moves_on(self) -> "WindowsConfig":
        if self.overlap > self.words // 2:
            raise ValueError(f"overlap = {self.overlap} is more than half of words = {self.words}")
        return self


class CoreferenceConfig(Settings):
    """Clusters of mentions: who and what a document speaks of, and where."""

    kind: Literal["coreference"] = "coreference"
    context: ContextConfig = ContextConfig()
    """Layers that read each sentence."""
    spans: SpansConfig = SpansConfig()
    """Which spans are looked at."""
    windows: WindowsConfig = WindowsConfig()
    """How a text to be predicted is cut."""


@dataclass(frozen=True, slots=True)
class Document:
    """The sentences of a document, and its clusters of mentions."""

    sentences: tuple[WordTuple, ...]
    clusters: tuple[tuple[Mention, ...], ...] = ()
    genre: str = ""
    """Empty where it is not known."""
    starts_at: int = 0
    """Words before it, where it is a window of a longer one; there, the overlap is part of both."""

    def with_words(self, _reader: TextReader, /) -> Self:
        """It is words already."""
        return self


@dataclass(frozen=True, repr=False)
class PredictedClusters:
    """A document with its clusters; mentions are counted over its words."""

    sentences: tuple[WordTuple, ...]
    clusters: tuple[tuple[Mention, ...], ...]
    starts_at: int = 0
    """Words before it, where it is a window."""

    @property
    def words(self) -> WordTuple:
        """Of all sentences."""
        return tuple(chain.from_iterable(self.sentences))

    def __repr__(self) -> str:
        words = self.words
        found = [" = ".join(" ".join(words[a:b]) for a, b in each[:4]) for each in self._several()]
        told = sentence("; ".join(found).split()) or "nothing found"
        return summary("Predicted", told, sentence(words))

    def _repr_html_(self) -> str:
        spans = [
            (start, stop, str(number), COLOURS[(number - 1) % len(COLOURS)])
            for number, cluster in enumerate(self._several(), start=1)
            for start, stop in cluster
        ]
        return html_spans(self.words, spans)

    def __rich__(self) -> RenderableType:
        """Mentions in brackets with the number of their cluster, which also has a colour."""
        opens: dict[int, list[tuple[int, int]]] = {}
        closes: dict[int, list[tuple[int, int]]] = {}
        for number, cluster in enumerate(self._several(), start=1):
            for start, stop in cluster:
                opens.setdefault(start, []).append((-stop, number))  # the longest first
                closes.setdefault(stop, []).append((-start, number))  # the shortest first
        text, inside = PrintableText(), list[int]()
        for place, word in enumerate(self.words):
            for _, number in sorted(opens.get(place, ())):
                text.append("[", style=_style(number))
                inside.append(number)
            text.append(word, style=f"bold {_style(inside[-1])}" if inside else None)
            for _, number in sorted(closes.get(place + 1, ())):
                text.append(f"]{number}", style=_style(number))
                inside.pop()
            text.append(" ")
        return text

    def _several(self) -> list[tuple[Mention, ...]]:
        """Clusters of more than one mention, in the order of their first ones: those that are
        shown."""
        return sorted(cluster for cluster in self.clusters if len(cluster) > 1)

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        return {"sentences": list(map(list, self.sentences)), "clusters": self.clusters}


@dataclass(frozen=True)
class Coreference(TaskFamily[Document, PredictedClusters]):
    """Clusters of mentions."""

    example_types: ClassVar = (Document,)
    measures: ClassVar = CLUSTER_MEASURES
    reads_whole_files: ClassVar = True
    config: CoreferenceConfig
    genres: tuple[str, ...] = field(default=(), kw_only=True)
    has_singletons: bool = field(default=False, kw_only=True)
    """Whether clusters of one mention are annotated, and so are to be found."""

    def fit(self, examples: Sequence[Document]) -> Self:
        """With the genres of the training data, and whether it has clusters of one."""
        load_assignment()  # what is missing is to be told before an epoch is over, not after
        if not any(example.clusters for example in examples):
            raise InputError("There is nothing to learn: no training document has a mention.")
        genres = sorted({example.genre for example in examples} - {""})
        if len(genres) > MAX_GENRES:
            raise InputError(f"{len(genres):,} genres are too many: at most {MAX_GENRES:,}.")
        has_singletons = any(len(cluster) == 1 for each in examples for cluster in each.clusters)
        return replace(self, genres=tuple(genres), has_singletons=has_singletons)

    def to_json(self) -> dict[str, Any]:
        """The same."""
        return {"genres": list(self.genres), "has_singletons": self.has_singletons}

    def restore(self, told: Mapping[str, Any]) -> Self:
        """The reverse."""
        genres, has_singletons = told["genres"], told["has_singletons"]
        if not all(isinstance(genre, str) for genre in genres) or len(genres) > MAX_GENRES:
            raise ValueError(f"genres are not a list of up to {MAX_GENRES:,} names")
        if not isinstance(has_singletons, bool):
            raise ValueError("has_singletons is neither true nor false")
        return replace(self, genres=tuple(genres), has_singletons=has_singletons)

    def facts(self) -> list[tuple[str, str]]:
        """What is found."""
        found = "clusters of one or more" if self.has_singletons else "clusters of two or more"
        return [("finds", found), *([("genres", " ".join(self.genres[:8]))] if self.genres else [])]

    def encode(self, examples: Sequence[Document], *, with_gold: bool) -> Columns:
        """`genre` (B,): from 1. `mentions` (B, G, 3): first word, word after the last, cluster from
        1."""
        numbers = {name: number for number, name in enumerate(self.genres, start=1)}
        genre = np.array([numbers.get(example.genre, 0) for example in examples], np.int64)
        if not with_gold:
            return {"genre": genre}
        return {"genre": genre, "mentions": [_encode(example.clusters) for example in examples]}

    def network(self, dims: InputDims) -> CoreferenceResolver:
        """Layers, spans, links."""
        return CoreferenceResolver(
            self.config.context,
            self.config.spans,
            dims,
            num_genres=len(self.genres),
            has_singletons=self.has_singletons,
        )

    def predicted(self, example: Document, found: Clusters) -> PredictedClusters:
        """The sentences and their clusters."""
        clusters = tuple(sorted(map(tuple, found)))
        return PredictedClusters(example.sentences, clusters, example.starts_at)

    def score(
        self, examples: Sequence[Document], predicted: Sequence[PredictedClusters]
    ) -> ClusterScores:
        """MUC, B³, CEAF."""
        gold, found = [each.clusters for each in examples], [each.clusters for each in predicted]
        return score_clusters(gold, found)

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Document]:
        """The text in windows; no sentence goes on after an empty line."""
        reader.check_length(texts[0])
        sentences = [
            words for part in _PARAGRAPH.split(texts[0]) for words in reader.sentences(part)
        ]
        if not sentences:
            raise InputError(f"There is no word in {texts[0][:60]!r}.")
        yield from in_windows(sentences, self.config.windows)

    def join(self, predicted: Iterator[PredictedClusters]) -> Iterator[PredictedClusters]:
        """The windows of each text as one."""
        whole: _Whole | None = None
        for window in predicted:
            if whole is not None and window.starts_at == 0:
                yield whole.finished(with_singletons=self.has_singletons)
                whole = None
            whole = whole or _Whole()
            whole.add(window)
        if whole is not None:
            yield whole.finished(with_singletons=self.has_singletons)


def in_windows(sentences: Sequence[WordTuple], config: WindowsConfig) -> Iterator[Document]:
    """Sentences in windows, each beginning with the last sentences of the one before."""
    first, starts_at = 0, 0
    while first < len(sentences):
        stop = first + _fitting(sentences[first:], config.words, least=1)
        window = tuple(sentences[first:stop])
        yield Document(window, starts_at=starts_at)
        if stop == len(sentences):
            return
        # At least one sentence is new in each window, and at least one is left behind.
        again = min(_fitting(window[::-1], config.overlap, least=0), len(window) - 1)
        while again and _num_words(sentences[stop - again : stop + 1]) > config.words:
            again -= 1
        starts_at += _num_words(window[: len(window) - again])
        first = stop - again


def _fitting(sentences: Sequence[WordTuple], most: int, *, least: int) -> int:
    """How many sentences have up to so many words together."""
    number = words = 0
    while number < len(sentences) and (number < least or words + len(sentences[number]) <= most):
        words += len(sentences[number])
        number += 1
    return number


def _num_words(sentences: Sequence[WordTuple]) -> int:
    return sum(map(len, sentences))


def _encode(clusters: Clusters) -> np.ndarray[Any, np.dtype[np.int64]]:
    rows = [(*mention, number) for number, each in enumerate(clusters, start=1) for mention in each]
    return np.array(rows, np.int64).reshape(-1, 3)


def _style(cluster: int) -> str:
    return TERMINAL_COLOURS[(cluster - 1) % len(TERMINAL_COLOURS)]


class _Whole:
    """A text, window after window.

    Mentions in the overlap are those of the earlier window, which has seen what comes before them.
    A cluster of the later window goes on with the cluster it shares most mentions with there.
    """

    def __init__(self) -> None:
        self._sentences: list[WordTuple] = []
        self._num_words = 0
        self._clusters: list[list[Mention]] = []
        self._recent: dict[Mention, int] = {}  # of the last window: the cluster of each mention

    def add(self, window: PredictedClusters) -> None:
        """The next window."""
        seen = self._num_words - window.starts_at
        recent: dict[Mention, int] = {}
        for cluster in window.clusters:
            moved = [(window.starts_at + a, window.starts_at + b) for a, b in cluster]
            shared = Counter(self._recent[each] for each in moved if each in self._recent)
            new = [each for each in moved if each[0] >= self._num_words]
            if not new:
                continue
            number = min(shared, key=lambda k: (-shared[k], k)) if shared else len(self._clusters)
            if number == len(self._clusters):
                self._clusters.append([])
            self._clusters[number] += new
            recent |= dict.fromkeys(new, number)
        self._recent = recent | {
            mention: number
            for mention, number in self._recent.items()
            if mention[0] >= window.starts_at
        }
        self._append(window.sentences, seen)

    def _append(self, sentences: Sequence[WordTuple], seen: int) -> None:
        """The sentences that are new: those after so many words."""
        for words in sentences:
            if seen <= 0:
                self._sentences.append(words)
                self._num_words += len(words)
            seen -= len(words)

    def finished(self, *, with_singletons: bool) -> PredictedClusters:
        """The text; a cluster of which one mention is left is one only where there are such."""
        least = 1 if with_singletons else 2
        clusters = [tuple(sorted(each)) for each in self._clusters if len(each) >= least]
        return PredictedClusters(tuple(self._sentences), tuple(sorted(clusters)))
