"""Text made fit for storing, or refused with the reason."""

import unicodedata

import pytest
from required import need_package

from polyseme.text.normalization import UnfitTextError, describe_script, normalize
from text.making import make_config


def test_good_text_is_left_as_it_is() -> None:
    text = "Grüße,\tשלום 中文 👩‍🔬 e\u0301"
    assert normalize(text, make_config()) == (text, False)


def test_control_characters_become_spaces_one_for_one() -> None:
    text = "a\x01b\x0cc\x7fd\x85e\r\nf\tg"
    assert normalize(text, make_config()) == ("a b c d e  f\tg", True)


def test_every_control_character_but_the_tab_is_replaced() -> None:
    controls = [c for c in map(chr, range(1, 0x110000)) if unicodedata.category(c) == "Cc"]
    kept = [c for c in controls if normalize(c, make_config())[0] == c]
    assert kept == ["\t"]


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(UnfitTextError, match="nul-character"):
        normalize("a\0b", make_config())


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_a_lone_surrogate_is_refused(code: int) -> None:
    with pytest.raises(UnfitTextError, match="lone-surrogate"):
        normalize(f"a{chr(code)}b", make_config())


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normalizing_gives_the_form_asked_for(form: str) -> None:
    text = "e\u0301 é ﬁ Ａ 가"
    normalized, _ = normalize(text, make_config(unicode_normalization=form))
    assert normalized == unicodedata.normalize(form, text)  # type: ignore[arg-type]


def test_nothing_is_normalized_unasked() -> None:
    assert normalize("e\u0301ﬁ", make_config())[0] == "e\u0301ﬁ"


def test_a_pile_of_marks_is_refused_where_it_would_be_sorted() -> None:
    pile = "a" + "\u0301" * 200 + "\u0316" * 200
    assert normalize(pile, make_config())[0] == pile
    with pytest.raises(UnfitTextError, match="piled-up-marks"):
        normalize(pile, make_config(unicode_normalization="NFC"))


def test_a_small_pile_of_marks_is_normalized() -> None:
    pile = "Z" + "\u0301\u0316\u0334" * 20
    assert normalize(pile, make_config(unicode_normalization="NFC"))[0] == unicodedata.normalize(
        "NFC", pile
    )


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
