"""Very long sentences and words: read in bounded memory and linear time, and every cut is told."""

import itertools
import time

import numpy as np
import pytest
from torch import Tensor

from embedding.making import POINTS, broken, layers_of, tiny
from polyseme.data.batch import Batch
from polyseme.embedding import sentence_encoder
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import Truncation
from polyseme.encoders.encoded import Encoded

LONG = [("ban", "no", "unseen")[n % 3] for n in range(20_000)]
CONTEXT = [point for point in POINTS if POINTS[point][0] != "none"]


@pytest.mark.parametrize("point", POINTS)
def test_twenty_thousand_words_come_whole_and_the_cut_is_told(point: str) -> None:
    embedder = tiny(point)
    [sentence] = embedder.embed([LONG])
    assert sentence.words == tuple(LONG)
    assert sentence.vectors.shape == (embedder.num_layers, 20_000, embedder.dim)
    assert np.isfinite(sentence.vectors).all()
    assert sentence.truncation.chunks == -(-20_000 // embedder.max_length)


@pytest.mark.parametrize("point", CONTEXT)
def test_pieces_are_those_a_corpus_would_have(point: str) -> None:
    embedder = tiny(point)
    words = LONG[: 2 * embedder.max_length + 1]  # three pieces, as equal as can be
    [whole] = layers_of(embedder, [words], batch_invariant=True)
    third = len(words) // 3
    edges = [0, third, 2 * len(words) // 3, len(words)]
    pieces = [words[begin:end] for begin, end in itertools.pairwise(edges)]
    alone = layers_of(embedder, pieces, batch_invariant=True)
    assert np.array_equal(whole, np.concatenate(alone, axis=1))
    assert embedder.truncation(words) == Truncation(chunks=3)


@pytest.mark.parametrize("point", ["elmo", "bert"])
def test_no_batch_grows_with_the_sentence(point: str) -> None:
    largest = 0

    def watch(encoded: Encoded, batch: Batch) -> tuple[Tensor, ...]:
        nonlocal largest
        largest = max(largest, batch.words.numel())
        return encoded.hidden_states

    layers_of(broken(tiny(point), watch), [LONG])
    assert largest <= sentence_encoder.WORDS


@pytest.mark.slow
@pytest.mark.parametrize("point", CONTEXT)
def test_time_grows_with_the_words_and_no_faster(point: str) -> None:
    embedder = tiny(point)

    def seconds(words: list[str]) -> float:
        times = []
        for _ in range(5):
            begin = time.process_time()
            layers_of(embedder, [words])
            times.append(time.process_time() - begin)
        return min(times)

    assert seconds(LONG * 4) < 3 * seconds(LONG * 2)  # the square would be 4


@pytest.mark.parametrize("point", POINTS)
def test_a_word_of_ten_thousand_letters_is_read_to_its_limit_and_told(point: str) -> None:
    embedder = tiny(point)
    kind = embedder.model.config.vocabulary.characters
    word, other = "水" * 10_000, "水" * 9_999
    [sentence] = embedder.embed([["ban", word, "no"]])
    assert np.isfinite(sentence.vectors).all()
    read = embedder.model.config.vocabulary.max_characters - 2
    written = {"none": 0, "unicode": 10_000 - read, "bytes": 30_000 - read}[kind]
    assert sentence.truncation == Truncation(1, written)
    [beside] = embedder.embed([["ban", other, "no"]])
    assert np.array_equal(sentence.vectors, beside.vectors), "what is not read changes nothing"


def test_cut_characters_are_counted_to_the_last(english: Embedder) -> None:
    elmo = tiny("elmo")
    assert elmo.model.config.vocabulary.max_characters == 12
    assert elmo.truncation(["x" * 10]) == Truncation()
    assert elmo.truncation(["x" * 11, "a", "x" * 13]) == Truncation(1, 4)
    assert tiny("plain elmo").truncation(["水" * 4]) == Truncation(1, 2)  # three bytes each
    assert english.truncation(["x" * 10_000]) == Truncation()  # reads no characters
