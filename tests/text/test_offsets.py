"""Places in normalized text, taken back to the text as it was given."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.text.normalization import original_offsets


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def test_a_text_that_is_normalized_already_keeps_its_places() -> None:
    assert original_offsets("a b", "a b", nfc).tolist() == [0, 1, 2]
    assert original_offsets("", "", nfc).tolist() == []


def test_a_letter_and_its_mark_are_one_and_what_follows_moves() -> None:
    given_text = "cafe\u0301 au lait"
    places = original_offsets(given_text, nfc(given_text), nfc)
    assert [given_text[place] for place in places] == list("cafe au lait")
    assert places[4] == 5  # the space stands behind the accent


def test_a_character_that_becomes_two_has_one_place() -> None:
    doubled = original_offsets("aßb", "assb", lambda text: text.replace("ß", "ss"))
    assert doubled.tolist() == [0, 1, 1, 2]


def test_where_letters_tell_nothing_places_are_right_to_the_word() -> None:
    jamo = "\u1112\u1161\u11ab"  # three parts of one Korean syllable
    text = f"x {jamo} yz"
    places = original_offsets(text, nfc(text), nfc)
    assert places.tolist() == [0, 1, 2, 5, 6, 7]


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(text=st.text(alphabet=st.sampled_from("ae\u0301\u0323 \u1112\u1161가ﬁ"), max_size=20))
@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFD"])
def test_places_never_fall_and_never_leave_the_text(form: Any, text: str) -> None:
    def normalize(part: str) -> str:
        return unicodedata.normalize(form, part)

    normalized = normalize(text)
    places = original_offsets(text, normalized, normalize).tolist()
    assert len(places) == len(normalized)
    assert places == sorted(places)
    assert all(0 <= place < len(text) for place in places)
