"""Spellings as numbers, compared with a plain loop over words and characters."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data.making import make_vocabulary
from polyseme.data.special_tokens import BOS, EOS, FIRST_WORD, MASK, PAD, UNK

# Combined, joined by invisible characters, outside the first plane, empty, far too long.
ODD = ["e\u0301", "👩\u200d👩\u200d👧", "𐍈𝒳", "中文", "", "\0", "a" * 10_000, "😀" * 60, "naïve"]
WORDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(ODD)
)
WIDTHS = st.sampled_from([4, 11, 50])


def published_bytes(word: str, width: int) -> list[int]:
    """The rule of bilm-tf's UnicodeCharsVocabulary, then one added as its Batcher does."""
    code = [260] * width
    encoded = word.encode("utf-8", "ignore")[: width - 2]
    code[0] = 258
    for k, byte in enumerate(encoded, start=1):
        code[k] = byte
    code[len(encoded) + 1] = 259
    return [number + 1 for number in code]


def plain_unicode(word: str, alphabet: str, width: int) -> list[int]:
    inside = [alphabet.index(c) + 8 if c in alphabet else 7 for c in word[: width - 2]]
    return [2, *inside, 3, *[1] * (width - 2 - len(inside))]


@settings(deadline=None)
@given(words=WORDS, width=WIDTHS)
@example(words=ODD, width=50)
def test_bytes_are_numbered_as_published(words: list[str], width: int) -> None:
    vocabulary = make_vocabulary(characters="bytes", max_characters=width)
    expected = [published_bytes(word, width) for word in words]
    assert vocabulary.char_ids_of(pa.array(words, pa.string())).tolist() == expected


@settings(deadline=None)
@given(words=WORDS, width=WIDTHS, letters=st.permutations("aeï😀中\u0301\0"))
@example(words=ODD, width=50, letters=["a", "\u0301", "中", "😀"])
def test_characters_are_numbered_in_their_order(
    words: list[str], width: int, letters: list[str]
) -> None:
    alphabet = "".join(letters)
    vocabulary = make_vocabulary(letters=alphabet, max_characters=width)
    expected = [plain_unicode(word, alphabet, width) for word in words]
    assert vocabulary.char_ids_of(pa.array(words, pa.string())).tolist() == expected


@pytest.mark.parametrize("kind", ["bytes", "unicode"])
def test_a_slice_of_an_array_has_the_ids_of_a_copy_of_it(kind: str) -> None:
    vocabulary = make_vocabulary(characters=kind)
    whole = pa.array(ODD, pa.string())
    sliced, copied = whole.slice(2, 4), pa.array(ODD[2:6], pa.string())
    assert np.array_equal(vocabulary.char_ids_of(sliced), vocabulary.char_ids_of(copied))


def test_special_tokens_of_bytes_are_those_published() -> None:
    tokens = make_vocabulary(characters="bytes", max_characters=6).special_token_chars.tolist()
    assert tokens[PAD] == [0] * 6
    assert tokens[BOS] == [259, 257, 260, 261, 261, 261]
    assert tokens[EOS] == [259, 258, 260, 261, 261, 261]


def test_special_tokens_of_unicode_have_characters_of_their_own() -> None:
    tokens = make_vocabulary(max_characters=5).special_token_chars.tolist()
    assert tokens[PAD] == [0] * 5
    assert tokens[BOS] == [2, 4, 3, 1, 1]
    assert tokens[EOS] == [2, 5, 3, 1, 1]
    assert tokens[MASK] == [2, 6, 3, 1, 1]
    assert tokens[UNK] == [2, 7, 3, 1, 1]


@pytest.mark.parametrize("kind", ["bytes", "unicode"])
def test_special_tokens_differ_from_each_other_and_from_every_word_of_one_character(
    kind: str,
) -> None:
    alphabet = "".join(chr(n) for n in range(128))
    vocabulary = make_vocabulary(letters=alphabet, characters=kind)
    words = vocabulary.char_ids_of(pa.array(["", *alphabet], pa.string())).tolist()
    char_ids = {tuple(row) for row in vocabulary.special_token_chars.tolist() + words}
    assert len(char_ids) == FIRST_WORD + 1 + 128


@pytest.mark.parametrize(("kind", "number"), [("none", 0), ("bytes", 262), ("unicode", 11)])
def test_every_character_id_is_below_their_number(kind: str, number: int) -> None:
    vocabulary = make_vocabulary(letters="abc", characters=kind)
    assert vocabulary.num_characters == number
    everything = pa.array(["c", "\x7f", "ÿ", "\U0010ffff"], pa.string())
    assert vocabulary.char_ids_of(everything).max(initial=-1) < number
    assert vocabulary.special_token_chars.max(initial=-1) < max(number, 1)


def test_without_characters_there_are_no_columns() -> None:
    assert make_vocabulary(characters="none").batch([["a", "b"]]).char_ids.shape == (5, 0)
