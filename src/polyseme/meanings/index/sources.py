"""A word in a corpus in; its uses, and whoever knows their features, out: a model, or an index.

With an index nothing is searched and nothing embedded. Without one, the model describes the uses
that are asked for, now, and nothing is kept: there is no hidden store that could be out of date.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyseme.errors import ConfigError
from polyseme.meanings.concordance.conditions import Condition
from polyseme.meanings.concordance.query import Query, in_longer_words
from polyseme.meanings.concordance.uses import Uses, find_terms, find_uses
from polyseme.meanings.features.use_features import Describer
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.meanings.features.use_describer import UseDescriber


@dataclass(frozen=True)
class UseSource:
    """Uses that were found, and what describes them."""

    uses: Uses
    describer: Describer
    notes: tuple[str, ...] = ()
    """What a reader should know of where they come from."""


def find_described(
    corpus: Corpus,
    query: Query,
    *,
    where: str | Condition | Sequence[str] = (),
    model: str | None = None,
    layer: int | None = None,
    index: Path | None = None,
) -> UseSource:
    """The uses of a word: by an index, if one is named, or by a model.

    A model that is named besides an index must be the one that the index was made with.
    """
    if index is not None:
        if layer is not None:
            raise ConfigError("An index has no single layers. Leave out --layer, or --index.")
        return find_in_index(index, corpus, query, where=where, model=model)
    model = named_model(model)
    terms = find_terms(query, corpus)  # before a model is loaded for a word that is not there
    with ThreadPoolExecutor(1) as pool:  # a model loads while Arrow reads the corpus
        describer = pool.submit(load_describer, model, corpus, layer)
        uses = find_uses(corpus, query, where=where, terms=terms)
    return UseSource(uses, describer.result(), _notes(corpus, query))


def named_model(model: str | None, instead: str = ", or an index (--index)") -> str:
    """The model, or an error that says what to name; `instead`: what would do besides."""
    if model is None:
        raise ConfigError(f"Name the model that describes the uses (--model){instead}.")
    return model


def find_in_index(
    index: Path,
    corpus: Corpus,
    query: Query,
    *,
    where: str | Condition | Sequence[str] = (),
    model: str | None = None,
) -> UseSource:
    """The uses of a word that an index has."""
    from polyseme.meanings.index.use_index import open_for

    found = open_for(index, corpus, model).find(corpus, query, where=where)
    return UseSource(found.uses, found, (*found.notes, *_notes(corpus, query)))


def _notes(corpus: Corpus, query: Query) -> tuple[str, ...]:
    mostly = in_longer_words(query, corpus)
    return (mostly.note,) if mostly else ()


def load_describer(model: str, corpus: Corpus, layer: int | None = None) -> "UseDescriber":
    """What describes the uses of a corpus: by all that a model tells, or by one of its layers."""
    from polyseme.embedding.loading import load_for_corpus
    from polyseme.meanings.features.layer_describer import LayerDescriber
    from polyseme.meanings.features.use_describer import UseDescriber

    embedder = load_for_corpus(model, corpus)
    return UseDescriber(embedder) if layer is None else LayerDescriber(embedder, layer)
