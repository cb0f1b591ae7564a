"""Vectors on the words of spaCy documents."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language

from embedding.making import reading, tiny
from polyseme.embedding import for_spacy
from polyseme.embedding.embedder import Embedder
from polyseme.errors import ConfigError, InputError

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
    with pytest.raises(ConfigError, match=r"rules for 'en' .*pipeline has spaCy's for 'de'"):
        pipeline(folder, "de")
    assert pipeline(folder, "de", any_words=True)("Die Katze")[0]._.polyseme.shape == (3, 32)
    tiny("elmo").model.save(tmp_path, card="A test.")
    with pytest.raises(ConfigError, match="words found by unknown rules"):
        pipeline(tmp_path)
    assert pipeline(tmp_path, any_words=True)("ban")[0]._.polyseme.shape == (3, 16)


_BY_ENTRY_POINT = """
import sys, spacy
nlp = spacy.blank("en")
loaded = {name for name in sys.modules if name.startswith("polyseme")}
assert "polyseme.embedding.for_spacy" in loaded and len(loaded) < 5, loaded  # spaCy stays light
nlp.add_pipe("polyseme", config={"model": sys.argv[1]})
print(nlp("The old cat")[2]._.polyseme.shape)
"""


def test_spacy_finds_the_component_without_an_import_of_polyseme(
    folder: Path, tmp_path: Path
) -> None:
    """As pip would write the entry points of pyproject.toml."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    told = tmp_path / "polyseme_as_installed-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: polyseme-as-installed\nVersion: 1\n"
    )
    lines = [f"{n} = {v}" for n, v in project["entry-points"]["spacy_factories"].items()]
    (told / "entry_points.txt").write_text("\n".join(["[spacy_factories]", *lines]))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{_BY_ENTRY_POINT}"
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(3, 32)", done.stderr


def test_vectors_of_words_spans_and_documents_are_spacys_own(
    folder: Path, english: Embedder
) -> None:
    document: Any = pipeline(folder)(TEXT)
    first, second = document.sents
    assert document.has_vector
    assert np.allclose(document.vector, english.encode(TEXT), atol=1e-6)
    assert np.allclose(first.vector, english.encode("The old cat purrs."), atol=1e-6)
    cat = document[2]
    assert np.allclose(cat.vector, cat._.polyseme.mean(axis=0), atol=1e-6)
    [space] = [word for word in document if word.is_space]
    assert not space.has_vector
    assert not space.vector.any()
    expected = english.similarity("The old cat purrs.", "One young dog barks!")
    assert first.similarity(second) == pytest.approx(expected, abs=1e-5)
    assert document.similarity(document) == pytest.approx(1, abs=1e-5)
    assert pipeline(folder)("").similarity(document) == 0


def test_two_uses_of_a_word_are_not_alike_for_being_the_same_word(folder: Path) -> None:
    document: Any = pipeline(folder, layers="top")("The old cat purrs. One young cat barks!")
    one, other = (word for word in document if word.text == "cat")
    assert one.vector.shape == (32,)
    assert one.similarity(other) < 0.9999
    assert document[2:3].similarity(document[7:8]) == pytest.approx(one.similarity(other))
    assert np.allclose(document[5:9].as_doc()[2].vector, other.vector)


def test_documents_of_models_of_different_width_are_not_compared(
    folder: Path, tmp_path: Path
) -> None:
    tiny("elmo").model.save(tmp_path, card="A test.")
    narrow = pipeline(tmp_path, any_words=True)("ban")
    with pytest.raises(InputError, match="32 and 16 dimensions"):
        pipeline(folder)("The cat").similarity(narrow)
