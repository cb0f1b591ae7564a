"""A spaCy component: every word of a document gets its vectors, as `word._.polyseme`.

    nlp.add_pipe("polyseme", config={"model": "en-mini"})

`word.vector`, `span.vector`, `document.vector` and `similarity` are filled, too: one vector for a
word, the average of the layers if all were asked for; for more words their mean.

spaCy finds the component by the entry point `factory`, which it loads in every program that uses
it. So nothing heavy is imported before a component is made, and PyTorch may be missing.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from polyseme.errors import ConfigError, InputError, extra_needed_for

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder

NAME = "polyseme"


def register() -> None:
    """Make the component known to spaCy. May be called again; spaCy does, by the entry point."""
    from spacy.language import Language

    defaults = {"layers": "all", "device": None, "any_words": False}
    Language.factory(NAME, default_config=defaults, func=_component)


def __getattr__(name: str) -> Any:
    """The entry point: what it names is registered when spaCy asks for it, not at import."""
    if name != "factory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    register()
    return _component


def _component(
    nlp: Any, name: str, model: str, layers: Any, device: str | None, any_words: bool
) -> "Component":
    """What `nlp.add_pipe` calls."""
    with extra_needed_for("Embedding"):
        from polyseme.embedding.loading import load_embedder

    embedder = load_embedder(model, device=device)
    if not any_words:
        _check_words(embedder, nlp.lang, name)
    kind: Any = type(nlp.make_doc("word")[0])  # what spaCy has for a word in its document
    if not kind.has_extension(NAME):
        kind.set_extension(NAME, default=None)
    return Component(embedder, layers)


class Component:
    """Embeds documents. Sentences are spaCy's, if a component before this one has found any."""

    def __init__(self, embedder: "WordEmbedder", layers: Any) -> None:
        self.embedder, self.layers = embedder, layers

    def __call__(self, document: Any) -> Any:
        """The document, its words with vectors."""
        return next(self.pipe([document]))

    def pipe(self, documents: Iterable[Any], batch_size: int = 128) -> Iterator[Any]:
        """The same for many documents, so many at a time, which share batches."""
        documents = iter(documents)
        while some := list(islice(documents, batch_size)):
            sentences = [words for document in some for words in _sentences(document)]
            for document in some:
                document.tensor = np.zeros((len(document), self.embedder.dim), np.float32)
                _answer_by_tensor(document)
            texts = ([self._normalized(word) for word in words] for words in sentences)
            found = self.embedder.embed(texts, layers=self.layers)
            for words, embedded in zip(sentences, found, strict=True):
                for place, word in enumerate(words):
                    vectors = embedded.vectors[..., place, :]
                    word._.set(NAME, vectors)
                    word.doc.tensor[word.i] = vectors if vectors.ndim == 1 else vectors.mean(axis=0)
            yield from some

    def _normalized(self, word: Any) -> str:
        """As the model's corpus would have it: normalized, and in its script."""
        return self.embedder.normalize(word.text) if self.embedder.segmenter else str(word.text)


def _sentences(document: Any) -> list[list[Any]]:
    """The words of each sentence; of the whole document where none were found."""
    spans = document.sents if document.has_annotation("SENT_START") else [document]
    return [[word for word in span if not word.is_space] for span in spans]


def _answer_by_tensor(document: Any) -> None:
    """Have spaCy take vectors from the document's tensor, not from its own table of words.

    Without these, two uses of the same word would be as similar as can be, whatever they mean.
    """
    of_words = {"vector": _mean, "has_vector": _has_words, "similarity": _similarity}
    of_word = {"vector": _vector, "has_vector": _is_word, "similarity": _similarity}
    document.user_hooks.update(of_words)
    document.user_span_hooks.update(of_words)
    document.user_token_hooks.update(of_word)


def _vector(word: Any) -> Any:
    return word.doc.tensor[word.i]


def _is_word(word: Any) -> bool:
    return not word.is_space


def _mean(part: Any) -> Any:
    """Of the words of a document, or of a span; of none, zeros."""
    tensor = getattr(part, "doc", part).tensor
    rows = tensor[[word.i for word in part if _is_word(word)]]
    return rows.sum(axis=0) / np.float32(max(1, len(rows)))


def _has_words(part: Any) -> bool:
    return any(map(_is_word, part))


def _similarity(one: Any, other: Any) -> float:
    """The cosine; 0 where there is no word."""
    if one.vector.shape != other.vector.shape:
        raise InputError(
            f"Vectors of {one.vector.size} and {other.vector.size} dimensions cannot be compared. "
            "Both documents need to come from the same pipeline."
        )
    lengths = float(one.vector_norm * other.vector_norm)
    return float(one.vector @ other.vector) / lengths if lengths else 0.0


def _check_words(embedder: "WordEmbedder", language: str, name: str) -> None:
    found = embedder.segmenter
    if found.get("name") != "spacy" or found.get("language") != language:
        from polyseme.text.segmenters import in_words

        raise ConfigError(
            f"The model of {name!r} was trained on words found by {in_words(found)}; this "
            f"pipeline has spaCy's for {language!r}. Take a pipeline of that kind, or set "
            "'any_words' to true in the component's config if its words are the same."
        )
