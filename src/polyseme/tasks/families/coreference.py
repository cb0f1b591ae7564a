"""Coreference: which words of a document speak of the same person, place or thing.

A document is read whole, its clusters of mentions found together. A text of any length is read in
windows of some hundred words that overlap; clusters of two windows are joined where they share
mentions. So a novel takes no more memory than a chapter, but who is gone for longer than the
overlap comes back as someone new.

    in   the sentences of a document, (S, T, D) of each word
    then a score for every span of up to `max_width` words within a sentence; the best are kept
    then for each span kept a score of each of some earlier ones: its antecedent, or none
    out  losses; or clusters, from following antecedents

After Lee et al. 2017 and 2018, made small: a span is read from its first word, its last word, and
its words weighted by attention; what the first layer makes of these is worked out once for every
word and only added for every span, so that all spans of 2,000 words take some 100 MB.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from rich.console import RenderableType
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.display import PrintableText, html_spans, sentence, summary
from polyseme.errors import InputError
from polyseme.tasks.embeddings.features import ByteDropout, InputDims, TaskInputs
from polyseme.tasks.families.family import Columns, Network, TaskBatch, TaskFamily
from polyseme.tasks.families.labels import (
    COLOURS,
    TERMINAL_COLOURS,
    Context,
    ContextConfig,
    LabelHead,
    check_finite,
)
from polyseme.tasks.measures import (
    CLUSTER_MEASURES,
    Clusters,
    ClusterScores,
    Mention,
    load_assignment,
    score_clusters,
)
from polyseme.tasks.texts import TextReader, WordTuple

_BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)  # of distances: where each but the first begins


class SpansConfig(Settings):
    """Which spans are looked at, and which are compared."""

    max_width: int = Field(10, ge=1, le=64)
    """Words of the longest mention that can be found; longer ones in the gold are missed."""
    per_word: float = Field(0.3, gt=0, le=1)
    """Spans that are kept for each word of a document, the best ones. More than there are mentions,
    or some are missed; time and memory grow with the square of what is kept."""
    max_antecedents: int = Field(50, ge=1, le=1_024)
    """Earlier spans that each is compared with closely, the best by a rough score."""
    dim: int = Field(150, ge=2, le=4_096)
    """Dimension of what a span is read as."""


class Spans(NamedTuple):
    """M spans of one document, in the order of its words."""

    start: Tensor  # (M,)
    stop: Tensor  # (M,) the word after the last
    vectors: Tensor  # (M, H)
    scores: Tensor  # (M,)
    """Of being mentions."""
    sentence: Tensor  # (M,)
    """The number of the sentence it stands in."""

    def select(self, chosen: Tensor) -> "Spans":
        """These only."""
        return Spans(*(part[chosen] for part in self))


class Links(NamedTuple):
    """What each of M spans may refer back to: A of the spans before it."""

    which: Tensor  # (M, A)
    """By number."""
    scores: Tensor  # (M, A), -inf where there are fewer than A
    """None of them scores 0."""


class CoreferenceResolver(Network):
    """Spans, then links between them; documents are read one after the other."""

    def __init__(
        self,
        context: ContextConfig,
        spans: SpansConfig,
        dims: InputDims,
        *,
        num_genres: int,
        has_singletons: bool,
    ) -> None:
        super().__init__()
        self.config, self.has_singletons = spans, has_singletons
        self.context = Context(context, dims)
        self.span_reader = SpanReader(self.context.dim, spans, context.dropout)
        self.linker = Linker(spans, context.dropout, num_genres)

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B,): for each span kept -log p of its gold antecedents together; the mean over them.

        Where clusters of one mention are annotated, also the cross-entropy of every span's being a
        mention, over as many.
        """
        found = []
        for number, spans in enumerate(self._all_spans(inputs, batch)):
            clusters = _gold_clusters(spans, batch["mentions"][number])
            kept = self._best(spans)
            links = self.linker(spans.select(kept), batch["genre"][number])
            loss = _link_losses(links, clusters[kept]).sum()
            if self.has_singletons:
                is_mention = (clusters > 0).float()
                loss = loss + functional.binary_cross_entropy_with_logits(
                    spans.scores.float(), is_mention, reduction="sum"
                )
            found.append(loss / len(kept))
        return torch.stack(found)

    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[list[list[Mention]]]:
        """The clusters of each document."""
        found = []
        for number, spans in enumerate(self._all_spans(inputs, batch)):
            check_finite(spans.scores)
            kept = spans.select(self._best(spans))
            links = self.linker(kept, batch["genre"][number])
            check_finite(links.scores.masked_fill(links.scores == -torch.inf, 0))
            found.append(_follow(kept, links, with_singletons=self.has_singletons))
        return found

    def _all_spans(self, inputs: TaskInputs, batch: TaskBatch) -> Iterator[Spans]:
        """Those of each document."""
        vectors = self.context(inputs)
        for number in range(len(batch)):
            rows = (batch.example_of == number).nonzero()[:, 0]  # its sentences, in their order
            mask = inputs.mask[rows]
            sentence = torch.arange(len(rows), device=mask.device)[:, None].expand_as(mask)[mask]
            yield self.span_reader(vectors[rows][mask], sentence)

    def _best(self, spans: Spans) -> Tensor:
        """The numbers of the spans that are kept, in order; none crosses another."""
        num_words = int(spans.stop[-1])
        most = min(len(spans.start), max(1, round(self.config.per_word * num_words)))
        best = spans.scores.detach().topk(most).indices
        ends = list(zip(spans.start[best].tolist(), spans.stop[best].tolist(), strict=True))
        is_kept = torch.tensor(not_crossing(ends), device=best.device)
        return best[is_kept].sort().values


class SpanReader(nn.Module):
    """Every span of a document: what it is read as, and its score as a mention."""

    def __init__(self, dim: int, config: SpansConfig, dropout: float) -> None:
        super().__init__()
        self.config = config
        self.first = nn.Linear(dim, config.dim)
        self.last = nn.Linear(dim, config.dim, bias=False)
        self.words = nn.Linear(dim, config.dim, bias=False)
        self.attention = nn.Linear(dim, 1)
        self.width = nn.Embedding(config.max_width, config.dim)
        self.dropout = ByteDropout(dropout)
        self.head = LabelHead(config.dim, config.dim, 1, dropout)

    def forward(self, vectors: Tensor, sentence: Tensor) -> Spans:
        """(W, D), (W,): the words of a document, and the number of each one's sentence."""
        num_words, width = len(vectors), self.config.max_width
        offset = torch.arange(width, device=vectors.device)
        place = torch.arange(num_words, device=vectors.device)[:, None] + offset  # (W, K)
        within = place.clamp(max=num_words - 1)
        is_span = (place < num_words) & (sentence[within] == sentence[:, None])
        hidden = (
            self.first(vectors)[:, None]
            + self.last(vectors)[within]
            + self._attended(vectors, within)
            + self.width.weight
        )  # (W, K, H)
        start, last = is_span.nonzero(as_tuple=True)
        read = self.dropout(hidden[start, last].relu())
        scores = self.head(read)[:, 0]
        return Spans(start, start + last + 1, read, scores, sentence[start])

    def _attended(self, vectors: Tensor, within: Tensor) -> Tensor:
        """(W, K, H): for each span the mean of its words, those that matter most weighing most."""
        width = self.config.max_width
        shape = (width, width)
        is_in = torch.ones(shape, dtype=torch.bool, device=vectors.device).tril()  # (K, K)
        asked = self.attention(vectors)[:, 0][within]  # (W, K)
        weights = asked[:, None].masked_fill(~is_in, -torch.inf).softmax(dim=-1)  # (W, K, K)
        return torch.bmm(weights, self.words(vectors)[within])


class Linker(nn.Module):
    """How well each span goes with some of those before it."""

    def __init__(self, config: SpansConfig, dropout: float, num_genres: int) -> None:
        super().__init__()
        self.config = config
        self.rough = nn.Linear(config.dim, config.dim, bias=False)
        self.later = nn.Linear(config.dim, config.dim)
        self.earlier = nn.Linear(config.dim, config.dim, bias=False)
        self.alike = nn.Linear(config.dim, config.dim, bias=False)
        self.spans_between = nn.Embedding(len(_BUCKETS) + 1, config.dim)
        self.sentences_between = nn.Embedding(len(_BUCKETS) + 1, config.dim)
        # Row 0 stands for a genre that training has not seen, or none: it adds nothing.
        self.genre = nn.Embedding(num_genres + 1, config.dim, padding_idx=0)
        self.dropout = ByteDropout(dropout)
        self.out = nn.Linear(config.dim, 1)

    def forward(self, spans: Spans, genre: Tensor) -> Links:
        """M spans in order -> for each up to A earlier ones, and how well they go with it."""
        number = torch.arange(len(spans.start), device=genre.device)
        rough = self.rough(spans.vectors) @ spans.vectors.T
        rough = rough + spans.scores[:, None] + spans.scores  # (M, M)
        rough = rough.masked_fill(number[:, None] <= number, -torch.inf)
        scores, which = rough.topk(min(self.config.max_antecedents, len(number)), dim=1)
        return Links(which, scores + self._close(spans, which, genre))

    def _close(self, spans: Spans, which: Tensor, genre: Tensor) -> Tensor:
        """(M, A): by what both are, what they share, how far apart they are, and the genre."""
        vectors = spans.vectors
        number = torch.arange(len(vectors), device=which.device)
        sentences = spans.sentence[:, None] - spans.sentence[which]
        hidden = (
            self.later(vectors)[:, None]
            + self.earlier(vectors)[which]
            + self.alike(vectors[:, None] * vectors[which])
            + self.spans_between(bucket(number[:, None] - which))
            + self.sentences_between(bucket(sentences))
            + self.genre(genre)
        )
        found: Tensor = self.out(self.dropout(hidden.relu()))[..., 0]
        return found


def bucket(distance: Tensor) -> Tensor:
    """The number of the bucket a distance falls in."""
    return torch.bucketize(distance, distance.new_tensor(_BUCKETS), right=True)


def not_crossing(ends: list[Mention]) -> list[bool]:
    """Which spans, the best first, cross no better one: they lie apart, or one within the other."""
    furthest: dict[int, int] = {}  # of spans kept, by their first word the longest's end
    nearest: dict[int, int] = {}  # by the word after the last the earliest beginning
    kept = []
    for start, stop in ends:
        crosses = any(
            furthest.get(place, 0) > stop or nearest.get(place, start) < start
            for place in range(start + 1, stop)
        )
        kept.append(not crosses)
        if not crosses:
            furthest[start] = max(furthest.get(start, 0), stop)
            nearest[stop] = min(nearest.get(stop, start), start)
    return kept


def _gold_clusters(spans: Spans, mentions: Tensor) -> Tensor:
    """(M,): the cluster of each span, from 1; 0 for what is no mention."""
    num_words = int(spans.stop[-1])
    start, stop, cluster = mentions[mentions[:, 1] > 0].T  # after its end there are zeros
    key = spans.start * (num_words + 1) + spans.stop
    wanted, order = (start * (num_words + 1) + stop).sort()
    if not len(wanted):
        return torch.zeros_like(key)
    place = torch.searchsorted(wanted, key).clamp(max=len(wanted) - 1)
    return torch.where(wanted[place] == key, cluster[order][place], 0)


def _link_losses(links: Links, clusters: Tensor) -> Tensor:
    """(M,): -log p of all right antecedents together; of none, where there is none."""
    scores = links.scores.float()
    none = scores.new_zeros(len(scores), 1)
    everything = torch.cat([none, scores], dim=1)
    is_right = (clusters[links.which] == clusters[:, None]) & (clusters[:, None] > 0)
    is_right = is_right & (scores > -torch.inf)
    has_none = ~is_right.any(dim=1, keepdim=True)
    right = everything.masked_fill(~torch.cat([has_none, is_right], dim=1), -torch.inf)
    return everything.logsumexp(dim=1) - right.logsumexp(dim=1)


def _follow(spans: Spans, links: Links, *, with_singletons: bool) -> list[list[Mention]]:
    """Clusters: each span joins that of its best antecedent, if it scores above none's 0."""
    best, column = links.scores.max(dim=1)
    antecedent = links.which.gather(1, column[:, None])[:, 0].tolist()
    is_mention = (spans.scores > 0).tolist()
    ends = list(zip(spans.start.tolist(), spans.stop.tolist(), strict=True))
    clusters: dict[int, list[Mention]] = {}
    cluster_of: dict[int, int] = {}
    for number, links_back in enumerate((best > 0).tolist()):
        own = number
        if links_back:
            own = cluster_of.setdefault(antecedent[number], antecedent[number])
            clusters.setdefault(own, [ends[own]])
        elif with_singletons and is_mention[number]:
            clusters.setdefault(number, [])
        else:
            continue
        cluster_of[number] = own
        clusters[own].append(ends[number])
    return [sorted(cluster) for cluster in clusters.values()]


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
        for words in window.sentences:
            if seen <= 0:  # it is new
                self._sentences.append(words)
                self._num_words += len(words)
            seen -= len(words)

    def finished(self, *, with_singletons: bool) -> PredictedClusters:
        """The text; a cluster of which one mention is left is one only where there are such."""
        least = 1 if with_singletons else 2
        clusters = [tuple(sorted(each)) for each in self._clusters if len(each) >= least]
        return PredictedClusters(tuple(self._sentences), tuple(sorted(clusters)))
