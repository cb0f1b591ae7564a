"""A spaCy component: every word of a document gets its vectors, as `word._.polyseme`.

    from polyseme.embedding import for_spacy
    for_spacy.register()
    nlp.add_pipe("polyseme", config={"model": "models/en-mini"})

Nothing is registered until `register` is called.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from polyseme.embedding.loading import load_embedder
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ConfigError

NAME = "polyseme"


def register() -> None:
    """Make the component known to spaCy. May be called again."""
    from spacy.language import Language

    defaults = {"layers": "all", "device": None, "any_words": False}
    Language.factory(NAME, default_config=defaults, func=_component)


def _component(
    nlp: Any, name: str, model: str, layers: Any, device: str | None, any_words: bool
) -> "Component":
    """What `nlp.add_pipe` calls."""
    embedder = load_embedder(model, device=device)
    if not any_words:
        _check_words(embedder, nlp.lang, name)
    kind: Any = type(nlp.make_doc("word")[0])  # what spaCy has for a word in its document
    if not kind.has_extension(NAME):
        kind.set_extension(NAME, default=None)
    return Component(embedder, layers)


class Component:
    """Embeds documents. Sentences are spaCy's, if a component before this one has found any."""

    def __init__(self, embedder: WordEmbedder, layers: Any) -> None:
        self.embedder, self.layers = embedder, layers

    def __call__(self, document: Any) -> Any:
        """The document, its words with vectors."""
        return next(self.pipe([document]))

    def pipe(self, documents: Iterable[Any], batch_size: int = 128) -> Iterator[Any]:
        """The same for many documents, so many at a time, which share batches."""
        documents = iter(documents)
        while some := list(islice(documents, batch_size)):
            sentences = [words for document in some for words in _sentences(document)]
            texts = ([self._normalized(word) for word in words] for words in sentences)
            found = self.embedder.embed(texts, layers=self.layers)
            for words, embedded in zip(sentences, found, strict=True):
                for place, word in enumerate(words):
                    word._.set(NAME, embedded.vectors[..., place, :])
            yield from some

    def _normalized(self, word: Any) -> str:
        """As the model's corpus would have it: normalized, and in its script."""
        return self.embedder.normalize(word.text) if self.embedder.segmenter else str(word.text)


def _sentences(document: Any) -> list[list[Any]]:
    """The words of each sentence; of the whole document where none were found."""
    spans = document.sents if document.has_annotation("SENT_START") else [document]
    return [[word for word in span if not word.is_space] for span in spans]


def _check_words(embedder: WordEmbedder, language: str, name: str) -> None:
    found = embedder.segmenter
    if found.get("name") != "spacy" or found.get("language") != language:
        raise ConfigError(
            f"The model of {name!r} was trained on words found by {found or 'unknown means'}; this "
            f"pipeline has spaCy's for {language!r}. Take a pipeline of that kind, or set "
            "'any_words' to true in the component's config if its words are the same."
        )
