"""How a sentence longer than an encoder's positions is read: in windows that overlap."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from required import need_package

from polyseme.embedding.hf.network import SubwordTokenizer, windows_of, with_spaces

LIMIT = 16


@given(st.lists(st.integers(0, LIMIT), min_size=1, max_size=80))
def test_every_word_is_taken_once_from_a_window_that_reads_it(counts: list[int]) -> None:
    windows = windows_of(np.array(counts), LIMIT)
    taken = [word for _, _, first, last in windows for word in range(first, last)]
    assert taken == list(range(len(counts)))
    for begin, end, first, last in windows:
        assert begin <= first <= last <= end
        assert sum(counts[begin:end]) <= LIMIT
    for one, other in pairwise(windows):
        assert one.begin < other.begin <= one.end < other.end


def test_windows_share_a_quarter_and_meet_in_its_middle() -> None:
    windows = windows_of(np.full(40, 1), LIMIT)
    assert windows == [(0, 16, 0, 14), (12, 28, 14, 26), (24, 40, 26, 40)]


@given(st.lists(st.integers(0, 3), min_size=60, max_size=300))
def test_a_word_away_from_the_ends_has_context_on_both_sides(counts: list[int]) -> None:
    """An eighth of the window at least, but for what words of three tokens do not fit into."""
    limit = 64
    for begin, end, first, last in (windows := windows_of(np.array(counts), limit)):
        if begin > 0:
            assert sum(counts[begin:first]) >= limit // 8 - 3
        if end < len(counts):
            assert sum(counts[last:end]) >= limit // 8 - 3
    assert len(windows) <= 1 + -(-sum(counts) // (limit // 2))


@pytest.mark.parametrize(
    ("words", "spaced"),
    [
        (["she", "plays", "."], ["she", " plays", " ."]),
        (["今天", "下雨", "，", "Ada", "说"], ["今天", "下雨", "，", "Ada", "说"]),
        (["ครับ", "ผม"], ["ครับ", "ผม"]),
        (["비가", "온다"], ["비가", " 온다"]),
        ([], []),
    ],
)
def test_a_space_goes_where_running_text_has_one(words: list[str], spaced: list[str]) -> None:
    assert with_spaces(words) == spaced


@pytest.mark.parametrize(
    ("scheme", "is_split"), [("always", False), ("always", True), ("first", False)]
)
def test_tokens_of_a_sentencepiece_tokenizer_are_those_of_running_text(
    scheme: str, is_split: bool
) -> None:
    """As XLM-R and T5 have it: the space before a word is a letter of its first token."""
    tokenizers = need_package("tokenizers")
    pieces = ["<unk>", "▁", *"abcdefghijklmnopqrtuvwxyz.", "▁the", "▁play", "s", "▁on"]
    table = [(piece, -float(len(pieces) - n)) for n, piece in enumerate(pieces)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(table, 0, False))
    metaspace = tokenizers.pre_tokenizers.Metaspace(prepend_scheme=scheme)
    whole = [tokenizers.pre_tokenizers.WhitespaceSplit()] if is_split else []
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([*whole, metaspace])
    text = "the play on the plays ."
    [found] = SubwordTokenizer(tokenizer, max_tokens=64)([text.split()])
    assert found.ids.tolist() == tokenizer.encode(text).ids
    assert found.counts.tolist() == [1, 1, 1, 1, 2, 2]
