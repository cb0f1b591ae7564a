"""Text made fit for storing, or refused with the reason."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from required import need_package

from polyseme.text.normalization import UnfitTextError, describe_script, normalize, original_offsets
from text.making import make_config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Grüße,\tשלום 中文 👩‍🔬 e\u0301ﬁ", ("Grüße,\tשלום 中文 👩‍🔬 e\u0301ﬁ", False)),
        ("a\x01b\x0cc\x7fd\x85e\r\nf\tg", ("a b c d e  f\tg", True)),
    ],
)
def test_control_characters_become_spaces_and_nothing_else_changes_unasked(
    text: str, expected: tuple[str, bool]
) -> None:
    assert normalize(text, make_config()) == expected


def test_every_control_character_but_the_tab_is_replaced() -> None:
    controls = [c for c in map(chr, range(1, 0x110000)) if unicodedata.category(c) == "Cc"]
    assert [c for c in controls if normalize(c, make_config())[0] == c] == ["\t"]


@pytest.mark.parametrize(
    ("character", "reason"),
    [("\0", "nul-character"), *((chr(code), "lone-surrogate") for code in (0xD800, 0xDBFF, 0xDC00,
     0xDFFF))],
)  # fmt: skip
def test_what_is_no_character_is_refused(character: str, reason: str) -> None:
    with pytest.raises(UnfitTextError, match=reason):
        normalize(f"a{character}b", make_config())


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normalizing_gives_the_form_asked_for(form: str) -> None:
    text = "e\u0301 é ﬁ Ａ 가"
    normalized, _ = normalize(text, make_config(unicode_normalization=form))
    assert normalized == unicodedata.normalize(form, text)  # type: ignore[arg-type]


def test_a_pile_of_marks_is_refused_where_it_would_be_sorted() -> None:
    pile, small = "a" + "\u0301" * 200 + "\u0316" * 200, "Z" + "\u0301\u0316\u0334" * 20
    assert normalize(pile, make_config())[0] == pile
    composed = make_config(unicode_normalization="NFC")
    assert normalize(small, composed)[0] == unicodedata.normalize("NFC", small)
    with pytest.raises(UnfitTextError, match="piled-up-marks"):
        normalize(pile, composed)


@pytest.mark.parametrize(
    ("script", "before", "after"),
    [("simplified", "漢語", "汉语"), ("traditional", "汉语", "漢語")],
)
def test_chinese_is_folded_to_the_script_asked_for(script: str, before: str, after: str) -> None:
    need_package("opencc")
    assert normalize(before, make_config(script=script))[0] == after


def test_the_converter_is_described_only_where_used() -> None:
    assert describe_script(make_config()) == {}
    need_package("opencc")
    assert describe_script(make_config(script="simplified"))["name"] == "opencc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a b", [0, 1, 2]),
        ("cafe\u0301 au", [0, 1, 2, 3, 5, 6, 7]),  # what follows the accent moves
        ("x \u1112\u1161\u11ab yz", [0, 1, 2, 5, 6, 7]),  # three parts of one Korean syllable
    ],
)
def test_places_in_normalized_text_lead_back_to_the_text_as_given(
    text: str, expected: list[int]
) -> None:
    composed = unicodedata.normalize("NFC", text)
    found = original_offsets(text, composed, lambda part: unicodedata.normalize("NFC", part))
    assert found.tolist() == expected


def test_a_character_that_becomes_two_has_one_place() -> None:
    doubled = original_offsets("aßb", "assb", lambda text: text.replace("ß", "ss"))
    assert doubled.tolist() == [0, 1, 1, 2]


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(text=st.text(alphabet=st.sampled_from("ae\u0301\u0323 \u1112\u1161가ﬁ"), max_size=20))
@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFD"])
def test_places_never_fall_and_never_leave_the_text(form: Any, text: str) -> None:
    def in_form(part: str) -> str:
        return unicodedata.normalize(form, part)

    normalized = in_form(text)
    places = original_offsets(text, normalized, in_form).tolist()
    assert len(places) == len(normalized)
    assert places == sorted(places)
    assert all(0 <= place < len(text) for place in places)
