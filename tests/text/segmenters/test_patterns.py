"""Chinese characters one by one, other words whole; or what stands between spaces."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.text.segmenters import Characters, Segmenter, Whitespace, describe_segmenter


@pytest.mark.parametrize(
    "words",
    [
        "天|下|雨|𠀀|〇|々",
        "Python3|和|café|，|3|天",
        "カ|ナ|か|な|ㄅ|ㄆ| |한국어",
        "cafe\u0301|和|हिन्दी|，|か\u3099",  # a letter keeps its combining marks
        "第|3.5|章|.|www.example.org|。",
        "“|好|！|？|”",
    ],
)
def test_han_kana_and_marks_are_single_and_other_words_whole(words: str) -> None:
    found = Characters().split(words.replace("|", "")).words
    assert found == [word for word in words.split("|") if word != " "]


def test_every_han_ideograph_is_single() -> None:
    names = [c for c in map(chr, range(0x110000)) if "IDEOGRAPH-" in unicodedata.name(c, "")]
    cjk = [c for c in names if unicodedata.name(c).startswith("CJK")]
    assert len(cjk) > 90_000
    assert [c for c in cjk if Characters().split(c + "x").words != [c, "x"]] == []


def test_white_space_alone_parts_words() -> None:
    found = Whitespace().split(" 我 来到\t北京,\u3000(now) ")
    assert found.words == ["我", "来到", "北京,", "(now)"]
    assert found.starts == [1, 3, 6, 10]


@pytest.mark.parametrize("segmenter", [Characters(), Whitespace()])
@given(text=st.text(max_size=100))
def test_words_lie_where_their_starts_say_and_none_is_lost(segmenter: Segmenter, text: str) -> None:
    found = segmenter.split(text)
    pairs = list(zip(found.words, found.starts, strict=True))
    assert all(text[start : start + len(word)] == word for word, start in pairs)
    assert "".join(found.words) == "".join(text.split())


def test_a_pattern_is_described_by_name_and_version() -> None:
    assert describe_segmenter("characters", "zh").keys() == {"name", "version"}
