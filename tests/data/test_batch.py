"""A batch, its parts, and what must not depend on its neighbours.

Spellings as numbers, compared with a plain loop over words and characters.
"""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from data.making import make_vocabulary
from polyseme.data.batch import BOS, EOS, FIRST_WORD, MAX_FILTER_WIDTH, PAD, Batch

SENTENCES = st.lists(st.lists(st.text("abcd", min_size=1, max_size=14), max_size=6), max_size=6)


def assert_same(left: Batch, right: Batch) -> None:
    for name in ("words", "lengths", "ids", "char_ids"):
        assert getattr(left, name).equal(getattr(right, name)), name


def strongest_windows(characters: Tensor, width: int) -> Tensor:
    """For each word its largest window of `width` characters, compared as numbers base 100."""
    powers = 100 ** torch.arange(width)
    return (characters.unfold(1, width, 1) * powers).sum(dim=2).max(dim=1).values


def test_the_mask_is_true_at_real_words() -> None:
    batch = make_vocabulary().batch([["a"], [], ["a", "b"]])
    assert batch.mask.tolist() == [
        [True, True, True, False],
        [True, True, False, False],
        [True, True, True, True],
    ]
    assert batch.num_words == 3 + 2 + 4


@settings(deadline=None, max_examples=60)
@given(sentences=SENTENCES, data=st.data())
def test_rows_selected_are_the_batch_built_from_them(
    sentences: list[list[str]], data: st.DataObject
) -> None:
    vocabulary = make_vocabulary(["a", "ab"], max_characters=12)
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1))) if sentences else []
    selected = vocabulary.batch(sentences).select(torch.tensor(rows, dtype=torch.int64))
    assert selected.char_ids.is_contiguous()
    if rows:
        assert_same(selected, vocabulary.batch([sentences[row] for row in rows]))
    else:
        assert selected.words.shape == (0, 0)


def test_selected_rows_keep_their_segments_and_labels() -> None:
    batch = make_vocabulary().batch([["a", "b"], ["c"], ["d", "a", "d"]])
    segments = torch.arange(15).view(3, 5)
    paired = Batch(
        batch.words, batch.lengths, batch.ids, batch.char_ids, segments, torch.tensor([1, 0, 1])
    )
    selected = paired.select(torch.tensor([1, 0]))
    assert selected.segments is not None
    assert selected.follows is not None
    assert selected.segments.tolist() == [[5, 6, 7, 8], [0, 1, 2, 3]]
    assert selected.follows.tolist() == [0, 1]


@settings(deadline=None, max_examples=30)
@given(word=st.text("abcd", max_size=25), others=st.lists(st.text("abcd", max_size=25)))
@example(word="a", others=["b" * 25])
@example(word="a" * 18, others=[])
@example(word="a" * 17, others=["b" * 18])
def test_what_a_filter_sees_of_a_word_does_not_depend_on_its_neighbours(
    word: str, others: list[str]
) -> None:
    vocabulary = make_vocabulary(max_characters=20)
    alone, together = vocabulary.batch([[word]]), vocabulary.batch([[word, *others]])
    for width in (1, 2, MAX_FILTER_WIDTH):
        # Negative too: padding, the smallest id, then makes the strongest window there is.
        for sign in (1, -1):
            one = strongest_windows(sign * alone.char_ids, width)[alone.words[0, 1]]
            other = strongest_windows(sign * together.char_ids, width)[together.words[0, 1]]
            assert one == other


def test_a_filter_wider_than_promised_does_see_the_neighbours() -> None:
    # Shows that the test above can fail.
    vocabulary = make_vocabulary(max_characters=30)
    alone, together = vocabulary.batch([["a"]]), vocabulary.batch([["a", "bbbbbbb"]])
    one = strongest_windows(-alone.char_ids, MAX_FILTER_WIDTH + 1)[alone.words[0, 1]]
    assert one != strongest_windows(-together.char_ids, MAX_FILTER_WIDTH + 1)[together.words[0, 1]]


def test_a_batch_moves_with_all_its_parts() -> None:
    batch = make_vocabulary().batch([["a"]])
    moved = Batch(
        batch.words, batch.lengths, batch.ids, batch.char_ids, batch.words, batch.lengths
    ).to("meta")
    assert all(getattr(moved, name).is_meta for name in Batch.__dataclass_fields__)


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
