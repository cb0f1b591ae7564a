"""A use in, the uses of the word that mean the same out, beside the word's static neighbours.

    in   marked sentences; uses of the word, described by a model or an index
    out  a `Nearest` each: uses, the most alike first; and words near the word without any sentence

The static neighbours mix all meanings of a word, as word2vec's do; the uses are those of one. All
uses of the word are looked at: no approximate index is as quick as reading one slice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.display import html_table, sentence, summary
from polyseme.meanings.concordance.export import Tabular
from polyseme.meanings.concordance.uses import MarkedUse, Use, Uses, UseTable
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.grouping import unit_length
from polyseme.meanings.groups.senses import draw_uses
from polyseme.meanings.index.use_index import UseSource
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder
    from polyseme.meanings.features.use_encoder import ModelUseEncoder


VIEWS = ("context", "bag", "substitutes")
"""The columns; the last only of models that predict words."""
_IDS = 1 << 16  # numbers that substitutes may have


@dataclass(frozen=True, eq=False)
class Centre:
    """What uses have in common."""

    context: Floats  # (D,)
    bag: Floats  # (D,)
    weights: Floats  # (W,) of each word as a substitute

    @classmethod
    def of(cls, features: UseFeatures) -> "Centre":
        """That of these uses."""
        found = features.substitutes
        ids = np.empty(0, np.int32) if found is None else found.ravel()
        weights = np.log((1 + len(features)) / (1 + np.bincount(ids, minlength=_IDS))) + 1
        context, bag = (view.mean(axis=0) for view in (features.context, features.bag))
        return cls(context, bag, weights.astype(np.float32))

    @classmethod
    def none(cls, features: UseFeatures) -> "Centre":
        """For uses of which nothing else is known."""
        context, bag = (
            np.zeros(view.shape[1], np.float32) for view in (features.context, features.bag)
        )
        return cls(context, bag, np.ones(_IDS, np.float32))


def similarities(one: UseFeatures, many: UseFeatures, centre: Centre) -> Floats:
    """(N, V): of the first use of `one` with each of `many`."""
    views = [
        _cosines(one.context, many.context, centre.context),
        _cosines(one.bag, many.bag, centre.bag),
    ]
    if one.substitutes is not None and many.substitutes is not None:
        squares = centre.weights**2
        is_own = np.zeros(_IDS, np.float32)
        is_own[one.substitutes[0]] = 1
        each = squares[many.substitutes]  # (N, K)
        shared = (each * is_own[many.substitutes]).sum(axis=1)
        lengths = np.sqrt(each.sum(axis=1) * squares[one.substitutes[0]].sum())
        views.append(shared / np.maximum(lengths, 1e-12))
    found: Floats = np.stack(views, axis=1).astype(np.float32)
    return found


def _cosines(one: Floats, many: Floats, centre: Floats) -> Floats:
    found: Floats = unit_length(many - centre) @ unit_length(one[:1] - centre)[0]
    return found


def pair_similarities(first: UseFeatures, second: UseFeatures, centre: Centre) -> Floats:
    """(N, V): of each use of `first` with that of `second` in the same place."""
    rows = [np.array([row]) for row in range(len(first))]
    return np.concatenate(
        [similarities(first.select(row), second.select(row), centre) for row in rows]
    )


_PARTS_OF_SPEECH = ("upos", "pos", "xpos")  # word attributes, as `prepare` names them
_SPARE = 10  # uses that are found besides, as some may be the very sentence
_STATIC_WORDS = 20_000  # of the model's words, the most frequent, static neighbours are among


@dataclass(frozen=True, eq=False)
class Nearest(Tabular):
    """The uses most alike to one."""

    use: MarkedUse
    uses: Uses
    """The most alike first."""
    similarities: tuple[float, ...]
    """For each: the mean cosine of the views, 1 being the same."""
    num_searched: int
    """Uses that were looked at."""
    static: tuple[tuple[str, float], ...]
    """Words near the word without any sentence, with their cosines; empty for an encoder that has
    no such vectors."""
    notes: tuple[str, ...] = ()
    """What a reader should know of where the uses come from."""
    tags: tuple[str, ...] = ()
    """The part of speech of each use, if the corpus has them."""

    def __iter__(self) -> Iterator[tuple[Use, float]]:
        return zip(self.uses, self.similarities, strict=True)

    @property
    def tag_shares(self) -> dict[str, float]:
        """The share of each part of speech among the uses, the largest first."""
        counts = Counter(self.tags)
        return {tag: count / len(self.tags) for tag, count in counts.most_common()}

    def table(self) -> UseTable:
        """The uses, one per row, with how similar each is."""
        first: dict[str, Sequence[str | float | None]] = {"similarity": self.similarities}
        return UseTable(self.uses, first | ({"tag": self.tags} if self.tags else {}))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found: dict[str, Any] = {
            "sentence": list(self.use.words),
            "begin": self.use.begin,
            "end": self.use.end,
            "searched": self.num_searched,
            "nearest": [
                {"text": use.text, "document": use.document, "similarity": round(value, 4)}
                for use, value in self
            ],
            "static": [
                {"word": word, "similarity": round(value, 4)} for word, value in self.static
            ],
            "notes": list(self.notes),
        }
        return found | ({"tags": self.tag_shares} if self.tags else {})

    def __repr__(self) -> str:
        first = next(iter(self.uses), None)
        said = f"first: {sentence(first.words)!r}" if first else ""
        return summary("Nearest", f"to {self.use.form!r} in {sentence(self.use.words)!r}", said)

    def _repr_html_(self) -> str:
        rows = [(value, use.text, use.document) for use, value in self]
        near = ", ".join(word for word, _ in self.static)
        title = f"Uses like {self.use.form!r} in {sentence(self.use.words)!r}"
        uses = html_table(title, rows, ("similarity", "use", "document"))
        return uses + (html_table("Static neighbours", [(near,)]) if near else "")


def nearest_to(
    marked: Sequence[MarkedUse],
    encoder: "ModelUseEncoder",
    source: UseSource,
    *,
    number: int = 10,
    seed: int = 1,
    progress: Progress = SILENT,
) -> list[Nearest]:
    """For each marked use, which the model describes: the uses of a source most alike to it.

    What a source has is described once, however many are asked about. No use is its own neighbour.
    """
    is_lazy = source.encoder is encoder
    uses = draw_uses(source.uses, seed) if is_lazy else source.uses
    progress.start("Describing uses", len(uses))
    features = source.encoder.encode(uses, progress.update)
    static = {
        form: static_neighbours(encoder.embedder, form, number)
        for form in {use.form for use in marked}
    }
    centre = Centre.of(features) if len(features) else None
    nearest = []
    for use in marked:
        own = encoder([use.words], np.array([[use.begin, use.end]]))
        order, found = most_alike(own, features, number + _SPARE, centre)
        rows = [row for row in order if not _is_same(uses, row, use)][:number]
        chosen = uses.select(rows)
        similarity = tuple(float(found[row]) for row in rows)
        nearest.append(
            Nearest(
                use, chosen, similarity, len(uses), static[use.form], source.notes, _tags(chosen)
            )
        )
    return nearest


def most_alike(
    own: UseFeatures, features: UseFeatures, number: int, centre: Centre | None = None
) -> tuple[list[int], Floats]:
    """The numbers of the uses most alike to one, and how alike each of all is.

    `centre`: that of all, if it is known already.
    """
    if not len(features):
        return [], np.empty(0, np.float32)
    centre = centre or Centre.of(features)
    found: Floats = similarities(own, features, centre).mean(axis=1)
    return np.argsort(-found, kind="stable")[:number].tolist(), found


def _tags(uses: Uses) -> tuple[str, ...]:
    """The part of speech of each use, if the corpus was prepared with such a word attribute."""
    names = uses.corpus.config.attributes if uses.corpus else ()
    name = next((name for name in _PARTS_OF_SPEECH if name in names), None)
    if name is None:
        return ()
    spans = uses.spans.tolist()
    found = (uses.attribute(n, name)[begin:end] for n, (begin, end) in enumerate(spans))
    return tuple("+".join(tag or "?" for tag in tags) for tags in found)


def _is_same(uses: Uses, row: int, use: MarkedUse) -> bool:
    begin, end = uses.spans[row].tolist()
    if (begin, end) != (use.begin, use.end):
        return False
    return tuple(uses.select([row]).sentences()[0]) == use.words


def static_neighbours(
    embedder: "WordEmbedder", word: str, number: int = 10
) -> tuple[tuple[str, float], ...]:
    """The words whose vectors without context are nearest, among the model's frequent ones.

    Not for an encoder of another library: it has no list of words. No other spelling of the word.
    """
    from polyseme.embedding.embedder import Embedder
    from polyseme.meanings.groups.grouping import unit_length

    if not isinstance(embedder, Embedder) or " " in word:
        return ()
    frequent = embedder.model.vocabulary.words.slice(0, _STATIC_WORDS).to_pylist()
    others = [
        each
        for each in frequent
        if any(map(str.isalpha, each)) and each.casefold() != word.casefold()
    ]
    vectors = unit_length(embedder.wv[[word, *others]])
    cosines = vectors[1:] @ vectors[0]
    best = np.argsort(-cosines, kind="stable")[:number]
    return tuple((others[row], float(cosines[row])) for row in best.tolist())
