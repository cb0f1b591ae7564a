"""A use in, the uses of the word that mean the same out, beside the word's static neighbours.

    in   marked sentences; uses of the word, described by a model or an index
    out  a `Nearest` each: uses, the most alike first; and words near the word without any sentence

The static neighbours mix all meanings of a word, as word2vec's do; the uses are those of one. All
uses of the word are looked at: no approximate index is as quick as reading one slice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.display import html_table, sentence, summary
from polyseme.meanings.concordance.export import UseTable, to_pandas, write_uses
from polyseme.meanings.concordance.marked_use import MarkedUse
from polyseme.meanings.concordance.tags import tags_of
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.named_groups import draw_uses
from polyseme.meanings.groups.similarity import Centre, similarities
from polyseme.meanings.index.sources import UseSource
from polyseme.progress import NullProgress, Progress

if TYPE_CHECKING:
    import pandas

    from polyseme.embedding.word_embedder import WordEmbedder
    from polyseme.meanings.features.use_describer import UseDescriber

_SPARE = 10  # uses that are found besides, as some may be the very sentence
_STATIC_WORDS = 20_000  # of the model's words, the most frequent, static neighbours are among


@dataclass(frozen=True, eq=False)
class Nearest:
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

    def to_pandas(self) -> "pandas.DataFrame":
        """`table` as a data frame; needs the package pandas."""
        return to_pandas(self.table())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """`table` for a spreadsheet or any other tool."""
        write_uses(self.table(), Path(path), kind=".csv")

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
    describer: "UseDescriber",
    source: UseSource,
    *,
    number: int = 10,
    tags: Path | None = None,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[Nearest]:
    """For each marked use, which the model describes: the uses of a source most alike to it.

    What a source has is described once, however many are asked about. No use is its own neighbour.
    """
    progress = progress or NullProgress()
    is_lazy = source.describer is describer
    uses = draw_uses(source.uses, seed) if is_lazy else source.uses
    progress.start("Describing uses", len(uses))
    features = source.describer.describe(uses, progress.update)
    static = {
        form: static_neighbours(describer.embedder, form, number)
        for form in {use.form for use in marked}
    }
    centre = Centre.of(features) if len(features) else None
    nearest = []
    for use in marked:
        own = describer([use.words], np.array([[use.begin, use.end]]))
        order, found = most_alike(own, features, number + _SPARE, centre)
        rows = [row for row in order if not _is_same(uses, row, use)][:number]
        chosen = uses.select(rows)
        of_uses = tuple(tag or "?" for tag in tags_of(chosen, tags)) if tags else ()
        similarity = tuple(float(found[row]) for row in rows)
        nearest.append(
            Nearest(use, chosen, similarity, len(uses), static[use.form], source.notes, of_uses)
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
