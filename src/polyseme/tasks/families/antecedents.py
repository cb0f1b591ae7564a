"""The network of coreference: which spans are mentions, and which earlier one each refers back to.

    in   the sentences of a document, (S, T, D) of each word
    then a score for every span of up to `max_width` words within a sentence; the best are kept
    then for each span kept a score of each of some earlier ones: its antecedent, or none
    out  losses; or clusters, from following antecedents

After Lee et al. 2017 and 2018, made small: a span is read from its first word, its last word, and
its words weighted by attention; what the first layer makes of these is worked out once for every
word and only added for every span, so that all spans of 2,000 words take some 100 MB.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from polyseme.config import Settings
from polyseme.tasks.clusters import Mention
from polyseme.tasks.embeddings.dropout import ByteDropout
from polyseme.tasks.embeddings.features import InputDims, TaskInputs
from polyseme.tasks.families.family import Network, TaskBatch
from polyseme.tasks.families.layers import Context, ContextConfig, LabelHead, check_finite

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
