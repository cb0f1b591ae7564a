"""Vectors on the words of spaCy documents."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language

from embedding.making import reading, tiny
from polyseme.embedding import for_spacy
from polyseme.embedding.embedder import Embedder
from polyseme.errors import ConfigError

TEXT = "The old cat purrs.  One young dog barks!"


@pytest.fixture(scope="module")
def folder(english: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spacy") / "model"
    english.model.save(folder, card="A test.")
    return folder


def pipeline(folder: Path, language: str = "en", **config: Any) -> Language:
    for_spacy.register()
    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("polyseme", config={"model": str(folder), **config})
    return nlp


def test_every_word_has_the_vectors_of_its_sentence(folder: Path, english: Embedder) -> None:
    document = pipeline(folder)(TEXT)
    words = [word for word in document if not word.is_space]
    expected = [vector for s in english.embed(TEXT) for vector in s.vectors.transpose(1, 0, 2)]
    assert len(words) == len(expected) == 10
    for word, vectors in zip(words, expected, strict=True):
        assert np.allclose(word._.polyseme, vectors, atol=1e-6)
    assert [word._.polyseme for word in document if word.is_space] == [None]


def test_documents_may_come_in_a_stream(folder: Path) -> None:
    nlp = pipeline(folder, layers="top")
    texts = [TEXT, "", "The hen clucks."] * 3
    for text, document in zip(texts, nlp.pipe(iter(texts), batch_size=2), strict=True):
        assert document.text == text
        for word, alone in zip(document, nlp(text), strict=True):
            if not word.is_space:
                assert word._.polyseme.shape == (32,)
                assert np.allclose(word._.polyseme, alone._.polyseme, atol=1e-6)


def test_without_sentences_a_document_is_one(folder: Path, english: Embedder) -> None:
    for_spacy.register()
    nlp = spacy.blank("en")
    nlp.add_pipe("polyseme", config={"model": str(folder)})
    words = [word for word in nlp(TEXT) if not word.is_space]
    [sentence] = english.embed([[word.text for word in words]])
    assert np.allclose(words[-1]._.polyseme, sentence.vectors[:, -1], atol=1e-6)


def test_words_are_normalized_as_the_models_were(tmp_path: Path) -> None:
    embedder = reading("café", language="en", unicode_normalization="NFC")
    embedder.model.save(tmp_path, card="A test.")
    [word] = pipeline(tmp_path)("cafe\u0301")
    [sentence] = embedder.embed([["café"]])
    assert np.allclose(word._.polyseme, sentence.vectors[:, 0], atol=1e-6)


def test_words_found_in_another_way_are_refused_unless_wanted(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'language': 'en'.*pipeline has spaCy's for 'de'"):
        pipeline(folder, "de")
    assert pipeline(folder, "de", any_words=True)("Die Katze")[0]._.polyseme.shape == (3, 32)
    tiny("elmo").model.save(tmp_path, card="A test.")
    with pytest.raises(ConfigError, match="words found by unknown means"):
        pipeline(tmp_path)
    assert pipeline(tmp_path, any_words=True)("ban")[0]._.polyseme.shape == (3, 16)
