"""Sentences are gathered, cut, sorted and put in order again; memory stays bounded."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.making import layers_of, tiny
from polyseme.data.batch import FIRST_ROW
from polyseme.embedding import bucketing
from polyseme.embedding.bucketing import ChunkBatch, LengthSortedBatches, group_sentences

LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


def sentences_of(lengths: list[int]) -> list[list[str]]:
    return [[f"w{row}.{place % 7}" for place in range(n)] for row, n in enumerate(lengths)]


def read_back(group: LengthSortedBatches, part: ChunkBatch) -> Iterator[tuple[int, int, list[str]]]:
    """Each row of a batch as words again: sentence, place of its first word, words."""
    for row, chunk in enumerate(part.chunks):
        length = int(part.batch.lengths[row])
        rows = part.distinct[part.batch.words[row, 1 : length - 1]].tolist()
        yield chunk.sentence, chunk.begin, [group.distinct[n - FIRST_ROW] for n in rows]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(LENGTHS, st.booleans())
def test_every_word_is_in_one_batch_and_finds_back(
    lengths: list[int], batch_invariant: bool
) -> None:
    sentences = sentences_of(lengths)
    group = LengthSortedBatches(sentences, max_length=25)
    found: dict[int, dict[int, list[str]]] = {}
    for part in group.batches(batch_invariant=batch_invariant):
        for sentence, begin, words in read_back(group, part):
            assert len(words) <= 25
            found.setdefault(sentence, {})[begin] = words
    for number, whole in enumerate(sentences):
        chunks = found.get(number, {})
        assert [word for begin in sorted(chunks) for word in chunks[begin]] == whole
        assert len(chunks) == -(-len(whole) // 25)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(LENGTHS)
def test_batches_are_bounded_and_the_longest_come_first(lengths: list[int]) -> None:
    parts = list(LengthSortedBatches(sentences_of(lengths), max_length=250).batches())
    for part in parts:
        rows, longest = part.batch.words.shape
        assert rows <= bucketing.ROWS
        assert rows == 1 or rows * longest <= bucketing.WORDS
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


def test_each_distinct_word_is_there_once() -> None:
    group = LengthSortedBatches([["a", "b", "a"], ["b"]], max_length=250)
    assert sorted(group.distinct) == ["a", "b"]
    [part] = group.batches()
    assert part.distinct.tolist() == [0, 1, 2, 3, 4]


def test_groups_are_bounded_by_sentences_and_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucketing, "SENTENCES", 3)
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
    monkeypatch.setattr(bucketing, "SENTENCES", 7)
    again = layers_of(embedder, sentences, batch_invariant=True)
    for found, expected in zip(again, whole, strict=True):
        assert np.array_equal(found, expected)
