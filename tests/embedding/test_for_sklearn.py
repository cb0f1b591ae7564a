"""Texts in a scikit-learn pipeline."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone  # our own extra, and of the group `check`: always there
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from polyseme.embedding.embedder import Embedder
from polyseme.embedding.for_sklearn import TextVectors

TEXTS = ["The old cat purrs. The cat purrs.", "One young dog barks .", "", "hen"]


@pytest.fixture(scope="module")
def folder(english: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sklearn") / "model"
    english.model.save(folder, card="A test.")
    return folder


def test_a_row_is_the_mean_over_all_words_of_a_text(folder: Path, english: Embedder) -> None:
    rows = TextVectors(folder, layers="top").fit_transform(TEXTS)
    assert rows.shape == (4, english.dim)
    assert rows.dtype == np.float32
    words = np.concatenate([s.vectors for s in english.embed(TEXTS[0], layers="top")])
    assert np.allclose(rows[0], words.mean(axis=0), atol=1e-6)
    assert not rows[2].any()
    assert np.allclose(rows[3], english.embed("hen", layers="top")[0].vectors[0], atol=1e-6)


def test_all_layers_stand_one_after_the_other(folder: Path, english: Embedder) -> None:
    vectors = TextVectors(folder, layers="all")
    rows = vectors.transform(TEXTS[1:2])
    [sentence] = english.embed(TEXTS[1])
    assert np.allclose(rows[0], sentence.sentence_vector().ravel(), atol=1e-6)
    assert len(vectors.get_feature_names_out()) == rows.shape[1] == 3 * english.dim


def test_lists_of_words_are_texts_too(folder: Path) -> None:
    vectors = TextVectors(folder)
    split = [["One", "young", "dog", "barks", "."]]
    assert np.array_equal(vectors.transform(split), vectors.transform(TEXTS[1:2]))


def test_a_pipeline_learns_on_top_of_it(folder: Path) -> None:
    texts = [f"The {age} {animal} ." for age in ("old", "young") for animal in ("cat", "dog")] * 5
    labels = ["cat" in text for text in texts]
    pipeline = make_pipeline(TextVectors(folder), LogisticRegression(C=1000))
    pipeline.fit(texts, labels)
    assert pipeline.score(texts, labels) == 1.0
    assert np.array_equal(clone(pipeline).fit(texts, labels).predict(texts), labels)


def test_a_stored_pipeline_holds_the_name_of_the_model_and_not_the_model(folder: Path) -> None:
    vectors = TextVectors(folder).fit(TEXTS)
    stored = pickle.dumps(vectors)
    assert len(stored) < 2000
    again = pickle.loads(stored)
    assert np.array_equal(again.transform(TEXTS), vectors.transform(TEXTS))
