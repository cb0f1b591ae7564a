"""Spellings as numbers, compared with a plain loop over words and characters."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from batches.making import make_lexicon
from polyseme.batches import END, FIRST_WORD, HIDDEN, PADDING, START, UNKNOWN

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
    lexicon = make_lexicon(characters="bytes", max_characters=width)
    expected = [published_bytes(word, width) for word in words]
    assert lexicon.characters_of(pa.array(words, pa.string())).tolist() == expected


@settings(deadline=None)
@given(words=WORDS, width=WIDTHS, letters=st.permutations("aeï😀中\u0301\0"))
@example(words=ODD, width=50, letters=["a", "\u0301", "中", "😀"])
def test_characters_are_numbered_in_their_order(
    words: list[str], width: int, letters: list[str]
) -> None:
    alphabet = "".join(letters)
    lexicon = make_lexicon(alphabet=alphabet, max_characters=width)
    expected = [plain_unicode(word, alphabet, width) for word in words]
    assert lexicon.characters_of(pa.array(words, pa.string())).tolist() == expected


@pytest.mark.parametrize("kind", ["bytes", "unicode"])
def test_a_slice_of_an_array_is_spelt_like_a_copy_of_it(kind: str) -> None:
    lexicon = make_lexicon(characters=kind)
    whole = pa.array(ODD, pa.string())
    sliced, copied = whole.slice(2, 4), pa.array(ODD[2:6], pa.string())
    assert np.array_equal(lexicon.characters_of(sliced), lexicon.characters_of(copied))


def test_marks_of_bytes_are_those_published() -> None:
    marks = make_lexicon(characters="bytes", max_characters=6).mark_characters.tolist()
    assert marks[PADDING] == [0] * 6
    assert marks[START] == [259, 257, 260, 261, 261, 261]
    assert marks[END] == [259, 258, 260, 261, 261, 261]


def test_marks_of_unicode_have_characters_of_their_own() -> None:
    marks = make_lexicon(max_characters=5).mark_characters.tolist()
    assert marks[PADDING] == [0] * 5
    assert marks[START] == [2, 4, 3, 1, 1]
    assert marks[END] == [2, 5, 3, 1, 1]
    assert marks[HIDDEN] == [2, 6, 3, 1, 1]
    assert marks[UNKNOWN] == [2, 7, 3, 1, 1]


@pytest.mark.parametrize("kind", ["bytes", "unicode"])
def test_marks_differ_from_each_other_and_from_every_word_of_one_character(kind: str) -> None:
    alphabet = "".join(chr(n) for n in range(128))
    lexicon = make_lexicon(alphabet=alphabet, characters=kind)
    words = lexicon.characters_of(pa.array(["", *alphabet], pa.string())).tolist()
    spellings = {tuple(row) for row in lexicon.mark_characters.tolist() + words}
    assert len(spellings) == FIRST_WORD + 1 + 128


@pytest.mark.parametrize(("kind", "number"), [("none", 0), ("bytes", 262), ("unicode", 11)])
def test_every_character_id_is_below_their_number(kind: str, number: int) -> None:
    lexicon = make_lexicon(alphabet="abc", characters=kind)
    assert lexicon.num_characters == number
    everything = pa.array(["c", "\x7f", "ÿ", "\U0010ffff"], pa.string())
    assert lexicon.characters_of(everything).max(initial=-1) < number
    assert lexicon.mark_characters.max(initial=-1) < max(number, 1)


def test_without_characters_there_are_no_columns() -> None:
    assert make_lexicon(characters="none").batch([["a", "b"]]).characters.shape == (5, 0)
