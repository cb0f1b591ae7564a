"""What people meet first: a folder, a text, vectors; and errors that say what to do.

Vectors without context: what gensim's users expect, worked out from layer 0.

Layer 0 of a word depends on the word alone, and what is remembered only makes it faster.

Sentences are gathered, cut, sorted and put in order again; memory stays bounded.
"""

import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.cases import WORDS as KNOWN
from pretraining.making import tiny_values
from torch import Tensor

import polyseme
from embedding.making import layers_of, reading, tiny
from polyseme.data.batch import FIRST_ROW
from polyseme.devices import num_threads
from polyseme.embedding import sentence_encoder
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.sentence_encoder import (
    LengthSortedBatches,
    WordEmbeddingCache,
    group_sentences,
)
from polyseme.embedding.settings import Layers
from polyseme.embedding.word_embedder import Truncation, WordEmbedder
from polyseme.errors import ConfigError, InputError, ModelError
from polyseme.tasks.embeddings.vector_files import read_vectors

TEXT = "The old cat purrs. One young dog barks and barks!"
WORDS = [["The", "old", "cat", "purrs", "."], ["One", "young", "dog", "barks", "and", "barks", "!"]]


def test_a_folder_and_a_text_give_sentences_with_vectors(english: Embedder, tmp_path: Path) -> None:
    english.model.save(tmp_path / "model", card="A test.")
    embedder = polyseme.load(tmp_path / "model")
    first, second = embedder.embed(TEXT)
    assert [first.words, second.words] == [tuple(words) for words in WORDS]
    assert first.vectors.shape == (embedder.num_layers, 5, embedder.dim) == (3, 5, 32)
    assert first.vectors.dtype == np.float32


def test_vectors_are_those_of_the_encoder(english: Embedder) -> None:
    """Found another way: one batch, straight through the network."""
    model = english.model
    with torch.no_grad():
        layers = model.network.encoder(model.vocabulary.batch(WORDS)).layers
    for row, sentence in enumerate(english.embed(WORDS)):
        expected = layers[:, row, 1 : 1 + len(WORDS[row])].numpy()
        assert np.abs(sentence.vectors - expected).max() < 1e-6


def test_text_and_its_words_give_the_same_vectors(english: Embedder) -> None:
    for one, other in zip(english.embed(TEXT), english.embed(WORDS), strict=True):
        assert one.words == other.words
        assert np.array_equal(one.vectors, other.vectors)
        assert other.starts is None
        assert other.ends is None
        assert one.truncation == other.truncation == Truncation()


def test_every_sentence_says_which_text_it_is_of(english: Embedder) -> None:
    found = english.embed([WORDS[0], TEXT, "", "The hen clucks. The pig grunts.", []])
    assert [(s.index, len(s.words)) for s in found] == [
        *[(0, 5), (1, 5), (1, 7), (3, 4), (3, 4), (4, 0)]
    ]
    assert english.embed("") == english.embed(" \n ") == english.embed([]) == []
    [empty] = english.embed([[]])
    assert (empty.words, empty.vectors.shape) == ((), (3, 0, 32))
    assert not empty.sentence_vector().any()


def test_an_iterator_gives_an_iterator_that_reads_only_so_far_ahead(english: Embedder) -> None:
    read = []

    def endless() -> Iterator[list[str]]:
        while True:
            read.append(1)
            yield ["cat"]

    found = english.embed(endless())
    assert not read
    assert next(found).index == 0
    assert len(read) <= sentence_encoder.SENTENCES + 1
    assert [next(found).index for _ in range(3 * sentence_encoder.SENTENCES)][
        -1
    ] == 3 * sentence_encoder.SENTENCES
    assert len(read) <= 4 * sentence_encoder.SENTENCES + 1


@pytest.mark.parametrize("kind", [tuple, deque, np.array])
def test_any_sequence_is_a_sentence_or_a_list_of_texts(english: Embedder, kind: Any) -> None:
    [sentence] = english.embed([kind(WORDS[0])])
    assert sentence.words == tuple(WORDS[0])
    assert {type(word) for word in sentence.words} == {str}
    assert len(english.embed(kind([TEXT, TEXT]))) == 4
    assert len(english.embed(kind(["cat"]))) == 1
    assert len(english.embed(kind(["cat", "dog", "The cat purrs."]))) == 3
    with pytest.raises(InputError, match=r"Each of the 2 texts is one word.*\[words\]"):
        english.embed(kind(["cat", "dog"]))


def test_a_list_that_is_filled_anew_for_each_sentence_does_no_harm(english: Embedder) -> None:
    def lines() -> Iterator[list[str]]:
        buffer: list[str] = []
        for words in WORDS:
            buffer[:] = words
            yield buffer

    assert [list(sentence.words) for sentence in english.embed(lines())] == WORDS


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "NoneType cannot be embedded"),
        (b"The cat", "bytes cannot be embedded"),
        ({"The": "cat"}, "dict cannot be embedded"),
        ({"The", "cat"}, "set cannot be embedded"),
        (3, "int cannot be embedded"),
        (pa.table({"text": ["The cat ."]}), r"Table cannot be embedded.*one column of a table"),
        ([b"The cat"], r"Text 0 is b'The cat', of type bytes"),
        (["The cat .", None], "Text 1 is None"),
        ([{"a"}], r"Text 0 is \{'a'\}, of type set"),
        ([["The", None]], "Sentence 0 has the word None"),
        ([["The"], ["cat", ""]], "Sentence 1 has the word ''"),
        ([["The", b"cat"]], "word b'cat', of type bytes"),
        ([[["The"], ["cat"]]], r"word \['The'\], of type list"),
        ("a\0b", "nul-character"),
        ("a\ud800b", "lone-surrogate"),
        (["The cat.", "a\0b"], "Text 1: .*nul-character"),
        ([["a", "\ud800b"]], r"The word '\\ud800b' holds half a character"),
    ],
)
def test_what_cannot_be_embedded_is_refused_in_words(
    english: Embedder, given: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        english.embed(given)


def test_what_is_not_there_is_refused_before_anything_is_read(english: Embedder) -> None:
    with pytest.raises(ConfigError, match="3 layers"):
        english.embed(iter(WORDS), layers=3)
    with pytest.raises(InputError, match=r"Sentence 1 is the text 'The cat'.*embed splits"):
        list(english.stream([["cat"], "The cat"]))
    wrong: tuple[dict[str, Any], ...] = ({"device": "tpu"}, {"precision": "int8"}, {"threads": 0})
    for bad in wrong:
        with pytest.raises(ConfigError, match=next(iter(bad))):
            tiny("elmo", **bad)


def test_very_large_numbers_are_not_taken_for_infinity() -> None:
    embedder = tiny("word2vec")
    projection = embedder.model.network.encoder.inputs.projection
    assert projection is not None
    with torch.no_grad():
        projection.bias.fill_(3e38)  # finite, though the sum of two is not
    [vectors] = embedder.stream([["ban", "no"]])
    assert np.isfinite(vectors).all()


def test_a_model_that_does_not_know_how_words_were_found_takes_lists_only() -> None:
    embedder = tiny("elmo")
    assert len(embedder.embed([["ban", "no"]])) == 1
    with pytest.raises(ModelError, match=r"tokenizer_from='en'.*give lists of words"):
        embedder.embed("ban no")


def test_layers_are_chosen_alike_in_embed_and_stream(english: Embedder) -> None:
    [every] = english.stream([WORDS[0]])
    wishes: list[tuple[Layers, Any]] = [
        ("top", every[2]),
        (1, every[1]),
        ("average", every.mean(0)),
    ]
    for wish, expected in wishes:
        [sentence] = english.embed([WORDS[0]], layers=wish)
        [streamed] = english.stream([WORDS[0]], layers=wish)
        assert sentence.vectors.shape == (5, 32)
        assert streamed.shape == (1, 5, 32)
        assert np.allclose(sentence.vectors, expected, atol=1e-6)
        assert np.array_equal(streamed[0], sentence.vectors)


def test_threads_are_set_when_a_model_is_loaded_and_never_while_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with num_threads(1):
        embedder = tiny("elmo", threads=2)
        assert torch.get_num_threads() == embedder.environment["threads"] == 2
        with monkeypatch.context() as patch:
            patch.setattr(torch, "set_num_threads", lambda _: pytest.fail("set again"))
            assert len(list(embedder.stream([["ban"]] * 3000))) == 3000  # three windows
        torch.set_num_threads(1)
        assert embedder.environment["threads"] == 1, "it tells what is, not what was asked for"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("point", ["elmo", "bert", "word2vec"])
def test_vectors_that_are_not_finite_are_never_given(point: str, value: float) -> None:
    embedder = tiny(point)
    assert list(embedder.stream([["ban"]]))
    broken = tiny(point)
    with torch.no_grad():
        list(broken.model.network.encoder.parameters())[-1].fill_(value)
    for batch_invariant in (False, True):
        with pytest.raises(ModelError, match="not finite"):
            list(broken.stream([["ban"]], batch_invariant=batch_invariant))


ANIMALS = "the The A river bank flooded king queen man woman cat purrs It sleeps dog barks . !"


@pytest.fixture(scope="module", params=["word", "characters"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    """Two directions, so layer 0 is there twice; words by their ids or by their characters."""
    inputs = {"kind": request.param, "dim": 16}
    return reading(ANIMALS, encoder={**tiny_values()["encoder"], "input": inputs}, language="en")


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_words_vector_is_layer_0_whatever_its_sentence(embedder: Embedder) -> None:
    (sentence,) = embedder.embed([["The", "river", "bank", "flooded"]], layers=0)
    vector = embedder.wv["bank"]
    assert vector.shape == (embedder.wv.vector_size,)
    assert np.allclose(sentence.vectors[2][: len(vector)], vector, atol=1e-6)
    rows = embedder.wv[["bank", "river", "bank"]]
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(rows[1], embedder.wv["river"])


def test_what_encode_cannot_do_is_refused(embedder: WordEmbedder) -> None:
    with pytest.raises(ConfigError, match="device = 'tpu' is not available here"):
        embedder.encode("The cat.", device="tpu")
    with pytest.raises(ConfigError, match="batch_size=0"):
        embedder.encode("The cat.", batch_size=0)
    with pytest.raises(InputError, match="Text 3 is None"):
        embedder.encode(["a", "b", "c", None], batch_size=2)


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


CACHED = [f"{'abcdefghij'[n % 10] * (n % 23)}n{n}" for n in range(90)]


def vectors_of(embedder: Embedder) -> tuple[WordEmbeddingCache, list[int]]:
    """Its layer 0, and how many words each call of the network was for."""
    model = embedder.model
    asked: list[int] = []

    def inputs(ids: Tensor, characters: Tensor) -> Tensor:
        asked.append(len(ids))
        found: Tensor = model.network.encoder.inputs(ids, characters)
        return found

    dim = model.config.encoder.contextualizer.dim
    return WordEmbeddingCache(inputs, model.vocabulary, dim=dim, device="cpu"), asked


@torch.no_grad()
def test_a_word_met_lately_is_not_worked_out_again() -> None:
    words, asked = vectors_of(tiny("elmo"))
    first = words(CACHED)
    calls = len(asked)
    assert torch.equal(words(CACHED), first)
    words(CACHED[:3])
    assert len(asked) == calls
    words(["another"])
    assert len(asked) == calls + 1


@torch.no_grad()
def test_memory_is_bounded_and_words_in_use_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "_NUM_WORDS", 10)
    words, asked = vectors_of(tiny("elmo"))
    expected = {word: words([word])[FIRST_ROW] for word in CACHED}
    words(["kept"])
    calls = len(asked)
    for word in CACHED:
        found = words(["kept", word])  # `kept` is asked for again and again
        assert torch.equal(found[FIRST_ROW + 1], expected[word])
        assert words._young.num_words <= 10
    assert len(asked) == calls + len(CACHED)  # forgotten, each worked out once more; `kept` never


@torch.no_grad()
def test_more_words_than_can_be_remembered_are_all_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "_NUM_WORDS", 10)
    few = vectors_of(tiny("elmo"))[0](CACHED)
    monkeypatch.undo()
    assert np.array_equal(few, vectors_of(tiny("elmo"))[0](CACHED))


def test_threads_may_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "_NUM_WORDS", 10)  # much is forgotten
    words, _ = vectors_of(tiny("word2vec"))
    with torch.no_grad():
        expected = {word: words([word])[FIRST_ROW] for word in KNOWN}

    def look_up(number: int) -> bool:
        chosen = [KNOWN[(number * 5 + n * 7) % len(KNOWN)] for n in range(6)]
        with torch.no_grad():
            found = words(chosen)[FIRST_ROW:]
        return all(torch.equal(a, expected[w]) for a, w in zip(found, chosen, strict=True))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(look_up, range(800)))
    finally:
        sys.setswitchinterval(before)


LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


def sentences_of(lengths: list[int]) -> list[list[str]]:
    return [[f"w{row}.{place % 7}" for place in range(n)] for row, n in enumerate(lengths)]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(LENGTHS)
def test_batches_are_bounded_and_the_longest_come_first(lengths: list[int]) -> None:
    parts = list(LengthSortedBatches(sentences_of(lengths), max_length=250).batches())
    for part in parts:
        rows, longest = part.batch.words.shape
        assert rows <= sentence_encoder.ROWS
        assert rows == 1 or rows * longest <= sentence_encoder.WORDS
    widths = [part.batch.words.shape[1] for part in parts]
    assert widths == sorted(widths, reverse=True)


def test_batch_invariant_batches_have_as_many_rows_of_one_length() -> None:
    lengths = [3, 9, 1, *[4] * 11]
    group = LengthSortedBatches(sentences_of(lengths), max_length=250)
    parts = list(group.batches(batch_invariant=True))
    shapes = [tuple(part.batch.words.shape) for part in parts]
    assert shapes == [(8, 11), (8, 6), (8, 6), (8, 5), (8, 3)]  # BOS and EOS counted
    assert [len(part.chunks) for part in parts] == [1, 8, 3, 1, 1]
    for part, (_, length) in zip(parts, shapes, strict=True):
        assert part.batch.lengths.tolist() == [length] * 8


def test_groups_are_bounded_by_sentences_and_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "SENTENCES", 3)
    lengths = [4, 4, 4, 4, 9, 4, 30, 1, 0]
    found = list(group_sentences(sentences_of(lengths), max_words=12))
    assert [[len(sentence) for sentence in group] for group in found] == [
        [4, 4, 4],
        [4],
        [9],
        [4],
        [30],
        [1, 0],
    ]


def test_where_groups_end_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = tiny("elmo")
    sentences = [["ban", "no"] * (n % 5) + ["unseen"] for n in range(40)]
    whole = layers_of(embedder, sentences, batch_invariant=True)
    monkeypatch.setattr(sentence_encoder, "SENTENCES", 7)
    again = layers_of(embedder, sentences, batch_invariant=True)
    for found, expected in zip(again, whole, strict=True):
        assert np.array_equal(found, expected)
