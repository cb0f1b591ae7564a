"""What people meet first: a folder, a text, vectors; and errors that say what to do."""

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import polyseme
from embedding.making import POINTS, lowest_cosine, tiny
from polyseme.devices import num_threads
from polyseme.embedding import bucketing
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.output import Truncation
from polyseme.embedding.settings import Layers
from polyseme.errors import ConfigError, InputError, ModelError

TEXT = "The old cat purrs. One young dog barks and barks!"
WORDS = [["The", "old", "cat", "purrs", "."], ["One", "young", "dog", "barks", "and", "barks", "!"]]


def test_a_folder_and_a_text_give_sentences_with_vectors(english: Embedder, tmp_path: Path) -> None:
    english.model.save(tmp_path / "model", card="A test.")
    embedder = polyseme.load(tmp_path / "model")
    first, second = embedder.embed(TEXT)
    assert [first.words, second.words] == [tuple(words) for words in WORDS]
    assert first.vectors.shape == (embedder.num_layers, 5, embedder.dim) == (3, 5, 32)
    assert first.vectors.dtype == np.float32


def test_importing_the_package_does_not_load_the_embedder() -> None:
    code = "import sys, polyseme; polyseme.load; print([n for n in sys.modules if 'polyseme' in n])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "['polyseme']"


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


def test_every_sentence_says_which_text_it_is_of(english: Embedder) -> None:
    found = english.embed([TEXT, "", "The hen clucks."])
    assert [sentence.index for sentence in found] == [0, 0, 2]
    assert [sentence.index for sentence in english.embed([*WORDS, []])] == [0, 1, 2]


def test_texts_and_lists_of_words_can_be_mixed(english: Embedder) -> None:
    found = english.embed([WORDS[0], "The hen clucks. The pig grunts."])
    assert [(s.index, len(s.words)) for s in found] == [(0, 5), (1, 4), (1, 4)]


def test_text_without_a_word_has_no_sentence_but_a_list_without_is_one(english: Embedder) -> None:
    assert english.embed("") == english.embed(" \n ") == english.embed([]) == []
    [empty] = english.embed([[]])
    assert empty.words == ()
    assert empty.vectors.shape == (3, 0, 32)
    assert not empty.sentence_vector().any()
    assert [len(s.words) for s in english.embed([["cat"], [], ["dog"]])] == [1, 0, 1]


def test_an_iterator_gives_an_iterator_that_reads_only_so_far_ahead(english: Embedder) -> None:
    read = []

    def endless() -> Iterator[list[str]]:
        while True:
            read.append(1)
            yield ["cat"]

    found = english.embed(endless())
    assert not read
    assert next(found).index == 0
    assert len(read) <= bucketing.SENTENCES + 1
    assert [next(found).index for _ in range(3 * bucketing.SENTENCES)][
        -1
    ] == 3 * bucketing.SENTENCES
    assert len(read) <= 4 * bucketing.SENTENCES + 1


@pytest.mark.parametrize("kind", [tuple, deque, np.array])
def test_any_sequence_of_words_is_a_sentence(english: Embedder, kind: Any) -> None:
    [sentence] = english.embed([kind(WORDS[0])])
    assert sentence.words == tuple(WORDS[0])
    assert {type(word) for word in sentence.words} == {str}


@pytest.mark.parametrize("kind", [tuple, deque, np.array])
def test_anything_with_a_length_gives_a_list(english: Embedder, kind: Any) -> None:
    assert len(english.embed(kind([TEXT, TEXT]))) == 4


def test_a_list_that_is_filled_anew_for_each_sentence_does_no_harm(english: Embedder) -> None:
    def lines() -> Iterator[list[str]]:
        buffer: list[str] = []
        for words in WORDS:
            buffer[:] = words
            yield buffer

    assert [list(sentence.words) for sentence in english.embed(lines())] == WORDS


@pytest.mark.parametrize("flat", [["The", "old", "cat"], ("cat", "dog"), np.array(["cat", "dog"])])
def test_a_flat_list_of_words_is_refused_in_words(english: Embedder, flat: Any) -> None:
    with pytest.raises(InputError, match=rf"Each of the {len(flat)} texts is one word.*\[words\]"):
        english.embed(flat)


def test_one_word_is_a_text_and_one_longer_text_makes_all_texts(english: Embedder) -> None:
    assert len(english.embed(["cat"])) == 1
    assert len(english.embed(["cat", "dog", "The cat purrs."])) == 3


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


def test_a_stream_takes_words_only(english: Embedder) -> None:
    with pytest.raises(InputError, match=r"Sentence 1 is the text 'The cat'.*embed splits"):
        list(english.stream([["cat"], "The cat"]))


def test_a_model_that_does_not_know_how_words_were_found_takes_lists_only() -> None:
    embedder = tiny("elmo")
    assert len(embedder.embed([["ban", "no"]])) == 1
    with pytest.raises(ModelError, match=r"tokenizer_from='en'.*give lists of words"):
        embedder.embed("ban no")


@pytest.mark.parametrize("point", POINTS)
def test_layers_and_width_are_told_before_anything_is_embedded(point: str) -> None:
    embedder = tiny(point)
    [vectors] = embedder.stream([["ban", "no"]])
    assert vectors.shape == (embedder.num_layers, 2, embedder.dim)


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


def test_an_unknown_layer_is_refused_before_anything_is_read(english: Embedder) -> None:
    with pytest.raises(ConfigError, match="3 layers"):
        english.embed(iter(WORDS), layers=3)


@pytest.mark.parametrize("bad", [{"device": "tpu"}, {"precision": "int8"}, {"threads": 0}])
def test_what_is_not_there_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        tiny("elmo", **bad)


def test_the_device_is_stated_where_none_was_asked_for() -> None:
    assert Embedder(tiny("elmo").model).device in ("cpu", "cuda", "mps")


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


def test_very_large_numbers_are_not_taken_for_infinity() -> None:
    embedder = tiny("word2vec")
    projection = embedder.model.network.encoder.inputs.projection
    assert projection is not None
    with torch.no_grad():
        projection.bias.fill_(3e38)  # finite, though the sum of two is not
    [vectors] = embedder.stream([["ban", "no"]])
    assert np.isfinite(vectors).all()


def test_nothing_is_cut_from_common_sentences(english: Embedder) -> None:
    assert all(sentence.truncation == Truncation() for sentence in english.embed(TEXT))


def test_half_precision_is_near_the_whole() -> None:
    for point in ("elmo", "bert"):
        [half] = tiny(point, precision="bfloat16").stream([["ban", "no", "unseen"]])
        [whole] = tiny(point).stream([["ban", "no", "unseen"]])
        assert half.dtype == np.float32
        assert lowest_cosine(half, whole) > 0.999
        assert not np.array_equal(half, whole)
