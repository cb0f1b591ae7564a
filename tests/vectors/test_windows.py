"""Sentences are gathered, cut, sorted and put in order again; memory stays bounded."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.batches.table import FIRST_ROW
from polyseme.vectors import windows
from polyseme.vectors.windows import Part, Window, gather
from vectors.making import layers_of, tiny

LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


def sentences_of(lengths: list[int]) -> list[list[str]]:
    return [[f"w{row}.{place % 7}" for place in range(n)] for row, n in enumerate(lengths)]


def read_back(window: Window, part: Part) -> Iterator[tuple[int, int, list[str]]]:
    """Each row of a batch as words again: sentence, place of its first word, words."""
    for row, piece in enumerate(part.pieces):
        length = int(part.batch.lengths[row])
        rows = part.distinct[part.batch.words[row, 1 : length - 1]].tolist()
        yield piece.sentence, piece.begin, [window.distinct[n - FIRST_ROW] for n in rows]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(LENGTHS, st.sampled_from([None, 1, 8]))
def test_every_word_is_in_one_batch_and_finds_back(lengths: list[int], rows: int | None) -> None:
    sentences = sentences_of(lengths)
    window = Window(sentences, longest=25)
    found: dict[int, dict[int, list[str]]] = {}
    for part in window.parts(rows):
        for sentence, begin, words in read_back(window, part):
            assert len(words) <= 25
            found.setdefault(sentence, {})[begin] = words
    for number, whole in enumerate(sentences):
        pieces = found.get(number, {})
        assert [word for begin in sorted(pieces) for word in pieces[begin]] == whole
        assert len(pieces) == -(-len(whole) // 25)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(LENGTHS)
def test_batches_are_bounded_and_the_longest_come_first(lengths: list[int]) -> None:
    parts = list(Window(sentences_of(lengths), longest=250).parts())
    for part in parts:
        rows, longest = part.batch.words.shape
        assert rows <= windows.ROWS
        assert rows == 1 or rows * longest <= windows.WORDS
    widths = [part.batch.words.shape[1] for part in parts]
    assert widths == sorted(widths, reverse=True)


def test_exact_batches_all_have_as_many_rows() -> None:
    parts = list(Window(sentences_of([3, 9, 1, 4, 4]), longest=250).parts(4))
    assert [part.batch.words.shape[0] for part in parts] == [4, 4]
    assert [len(part.pieces) for part in parts] == [4, 1]
    assert parts[1].batch.lengths.tolist() == [3, 2, 2, 2]


def test_each_distinct_word_is_there_once() -> None:
    window = Window([["a", "b", "a"], ["b"]], longest=250)
    assert sorted(window.distinct) == ["a", "b"]
    [part] = window.parts()
    assert part.distinct.tolist() == [0, 1, 2, 3, 4]


def test_windows_are_bounded_by_sentences_and_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SENTENCES", 3)
    lengths = [4, 4, 4, 4, 9, 4, 30, 1, 0]
    found = list(gather(sentences_of(lengths), most_words=12))
    assert [[len(sentence) for sentence in window] for window in found] == [
        [4, 4, 4],
        [4],
        [9],
        [4],
        [30],
        [1, 0],
    ]


def test_where_windows_end_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = tiny("elmo")
    sentences = [["ban", "no"] * (n % 5) + ["unseen"] for n in range(40)]
    whole = layers_of(embedder, sentences, exact=True)
    monkeypatch.setattr(windows, "SENTENCES", 7)
    for found, expected in zip(layers_of(embedder, sentences, exact=True), whole, strict=True):
        assert np.array_equal(found, expected)
