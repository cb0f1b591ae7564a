"""Vectors without context: what gensim's users expect, worked out from layer 0."""

from pathlib import Path

import numpy as np
import pytest
import torch
from pretraining.making import tiny_values

from embedding.making import reading
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.errors import ConfigError, InputError
from polyseme.tasks.embeddings.vector_files import read_vectors

WORDS = "the The A river bank flooded king queen man woman cat purrs It sleeps dog barks . !"


@pytest.fixture(scope="module", params=["word", "characters"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """Two directions, so layer 0 is there twice; words by their ids or by their characters."""
    inputs = {"kind": request.param, "dim": 16}
    return reading(WORDS, encoder={**tiny_values()["encoder"], "input": inputs}, language="en")


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_words_vector_is_layer_0_whatever_its_sentence(embedder: Embedder) -> None:
    (sentence,) = embedder.embed([["The", "river", "bank", "flooded"]], layers=0)
    vector = embedder.wv["bank"]
    assert vector.shape == (embedder.wv.vector_size,)
    assert np.allclose(sentence.vectors[2][: len(vector)], vector, atol=1e-6)


def test_several_words_are_rows_in_their_order_also_twice(embedder: Embedder) -> None:
    rows = embedder.wv[["bank", "river", "bank"]]
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(rows[1], embedder.wv["river"])


def test_the_most_similar_words_are_those_of_the_highest_cosine(embedder: Embedder) -> None:
    wv = embedder.wv
    found = wv.most_similar("river", topn=5)
    everyone = {word: cosine(wv["river"], vector)
                for word, vector in zip(wv.index_to_key, wv.vectors, strict=True)}  # fmt: skip
    del everyone["river"]
    best = sorted(everyone, key=lambda word: -everyone[word])[:5]
    assert [word for word, _ in found] == best
    assert found[0][1] == pytest.approx(everyone[best[0]], abs=1e-5)
    assert wv.similarity("river", best[0]) == pytest.approx(everyone[best[0]], abs=1e-5)


def test_words_are_added_and_taken_off(embedder: Embedder) -> None:
    wv = embedder.wv
    found = wv.most_similar(positive=["king", "woman"], negative=["man"], topn=3)
    unit = [wv[word] / np.linalg.norm(wv[word]) for word in ("king", "woman", "man")]
    target = unit[0] + unit[1] - unit[2]
    rest = [word for word in wv if word not in ("king", "woman", "man")]
    best = max(rest, key=lambda word: cosine(wv.vectors[wv.key_to_index[word]], target))
    assert found[0][0] == best
    with pytest.raises(InputError, match="Name a word"):
        wv.most_similar()


def test_a_word_has_a_vector_if_the_model_can_read_it(embedder: Embedder) -> None:
    wv = embedder.wv
    assert len(wv) == len(wv.index_to_key) == len(wv.vectors)
    reads_characters = embedder.model.config.encoder.widest_filter > 0
    assert ("neverseenword" in wv) == reads_characters
    if reads_characters:
        assert np.isfinite(wv["neverseenword"]).all()
    assert "" not in wv
    assert 5 not in wv
    with pytest.raises(KeyError, match="not among"):
        wv[""]


def test_what_is_saved_is_what_is_read_again(embedder: Embedder, tmp_path: Path) -> None:
    wv = embedder.wv
    wv.save_word2vec_format(tmp_path / "en.vec")
    wanted = wv.index_to_key[:10]
    again = read_vectors(tmp_path / "en.vec", wanted)
    assert again.stats.warnings() == []
    assert again.stats.rows == len(wv)
    assert again.words == wanted
    assert np.array_equal(again.vectors, wv.vectors[:10])


def test_a_text_has_one_vector_the_mean_over_its_words(embedder: WordEmbedder) -> None:
    texts = ["The cat purrs. It sleeps!", ["The", "dog"], ""]
    found = embedder.encode(texts)
    words = np.concatenate([s.vectors for s in embedder.embed(texts[0], layers="average")])
    assert np.allclose(found[0], words.mean(axis=0), atol=1e-5)
    assert not found[2].any()
    assert np.allclose(embedder.encode(str(texts[0])), found[0], atol=1e-6)
    assert embedder.encode(texts, layers="all").shape == (3, embedder.num_layers * embedder.dim)
    assert embedder.encode([]).shape == (0, embedder.dim)


def test_encode_takes_what_sentence_transformers_does(embedder: WordEmbedder) -> None:
    texts = ["The cat purrs. It sleeps!", ["The", "dog"], "", "A hen clucks."]
    plain = embedder.encode(texts)
    for size in (1, 3, 32):
        assert np.allclose(embedder.encode(texts, batch_size=size, device="cpu"), plain, atol=1e-6)
    tensor = embedder.encode(texts, convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor)
    assert np.allclose(tensor.numpy(), plain, atol=1e-6)
    assert embedder.encode("A hen clucks.", convert_to_tensor=True).shape == (embedder.dim,)
    rows = embedder.encode(texts, convert_to_numpy=False)
    assert isinstance(rows, list)
    assert torch.equal(torch.stack(rows), tensor)
    lengths = np.linalg.norm(embedder.encode(texts, normalize_embeddings=True), axis=1)
    assert np.allclose(lengths, [1, 1, 0, 1], atol=1e-5)


def test_encode_shows_progress_on_standard_error_if_asked(
    embedder: WordEmbedder, capsys: pytest.CaptureFixture[str]
) -> None:
    embedder.encode(["The cat."], show_progress_bar=False)
    assert capsys.readouterr().err == ""
    embedder.encode(["The cat."] * 4, batch_size=2, show_progress_bar=True)
    shown = capsys.readouterr()
    assert "Encoding" in shown.err
    assert "100%" in shown.err
    assert shown.out == ""


def test_encode_refuses_a_device_or_a_size_that_cannot_be(embedder: WordEmbedder) -> None:
    with pytest.raises(ConfigError, match="device = 'tpu' is not available here"):
        embedder.encode("The cat.", device="tpu")
    with pytest.raises(ConfigError, match="batch_size=0"):
        embedder.encode("The cat.", batch_size=0)


def test_a_text_that_cannot_be_encoded_is_named_by_its_own_number(embedder: WordEmbedder) -> None:
    with pytest.raises(InputError, match="Text 3 is None"):
        embedder.encode(["a", "b", "c", None], batch_size=2)


def test_similarity_is_the_cosine_of_two_texts_or_of_each_with_each(embedder: WordEmbedder) -> None:
    one, others = "The cat purrs.", ["The cat purrs.", "A dog barks.", ""]
    table = embedder.similarity(one, others)
    assert table.shape == (1, 3)
    assert table[0, 0] == pytest.approx(1, abs=1e-5)
    assert table[0, 2] == 0
    expected = cosine(embedder.encode(one), embedder.encode(others[1]))
    single = embedder.similarity(one, others[1])
    assert isinstance(single, float)
    assert single == pytest.approx(expected, abs=1e-5)
    made = embedder.encode(others)
    assert np.allclose(embedder.similarity(made, made), embedder.similarity(others, others))
    with pytest.raises(InputError, match="dimensions"):
        embedder.similarity(made, made[:, :5])
