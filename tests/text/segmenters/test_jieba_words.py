"""The same words as jieba's own, with their places."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from required import needs

from polyseme.errors import InputError
from polyseme.text.preprocessing import Preparation, TextPreprocessor
from polyseme.text.segmenters import describe_segmenter, load_segmenter
from polyseme.text.segmenters.jieba_words import (
    JiebaWords,
    LikeliestWords,
    _import_jieba,
    read_user_words,
)
from polyseme.text.settings import CorpusConfig

pytestmark = needs(importlib.util.find_spec("jieba") is not None, "the extra [zh]")

SENTENCES = [
    "我来到北京清华大学。",
    "他来到了网易杭研大厦，2024年5月1日！",
    "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
    "Python 3.11 和 C++ 都很好；café 也是。",
    "永和服装饰品有限公司  有 空格\t和\n换行",
    "",
    "。。。",
]


@pytest.fixture(scope="module")
def jieba() -> Any:
    """jieba itself, its dictionary loaded from the package and not from a shared cache."""
    module = _import_jieba()
    original = module.Tokenizer()
    with original.get_dict_file() as dictionary:
        original.FREQ, original.total = original.gen_pfdict(dictionary)
    original.initialized = True
    return original


def ours() -> JiebaWords:
    segmenter = load_segmenter("jieba", "zh")
    assert isinstance(segmenter, JiebaWords)
    return segmenter


@settings(max_examples=150, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from("我来到北京大学中国的是龘ab1.%é ，。\n\u3000😀"),
        max_size=80,
    )
)
def test_words_lie_where_their_starts_say_and_none_is_lost(text: str) -> None:
    found = ours().split(text)
    pairs = list(zip(found.words, found.starts, strict=True))
    assert all(text[start : start + len(word)] == word for word, start in pairs)
    assert "".join(found.words) == "".join(text.split())


@settings(max_examples=300, deadline=None)
@example("我来到北京清华大学" * 55)  # 495 characters without a mark
@example("小明硕士毕业于中国科学院计算所，后在日本京都大学深造")
@example("永和服装饰品有限公司  有 空格\t和\n换行")
@example("Python 3.11 和 C++ 都很好；café 也是。")
@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from("我来到北京大学中国的是研究生命龘ab1.%+#&_-é ，。\r\n\u3000😀㐀龥"),
            st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD6),
        ),
        max_size=60,
    )
)
def test_any_text_has_the_words_of_jieba(jieba: Any, text: str) -> None:
    assert ours().split(text).words == [word for word in jieba.cut(text) if not word.isspace()]


def test_chance_does_not_decide_between_words_that_are_as_likely() -> None:
    """By hand: of two paths as likely, jieba takes the longer first word, and S before E."""
    model: Any = (
        dict.fromkeys("BMES", -1.0),
        {"B": {"E": -1.0, "M": -1.0}, "M": {"E": -1.0, "M": -1.0},
         "E": {"B": -1.0, "S": -1.0}, "S": {"B": -1.0, "S": -1.0}},
        {state: {} for state in "BMES"},
    )  # fmt: skip
    words = LikeliestWords({"甲": 4, "甲乙": 1, "乙": 4}, 16, model)
    assert words.cut("甲乙") == ["甲乙"]  # 1/16 against 4/16 x 4/16
    assert words.cut("丙丁") == ["丙", "丁"]


def test_an_endless_run_is_cut_and_nothing_is_lost() -> None:
    text = "好，" + "龘靐齉" * 1000 + "。我来到北京"
    found = ours().split(text)
    assert "".join(found.words) == text
    assert found.words[-3:] == ["我", "来到", "北京"]
    assert max(map(len, found.words)) <= 500


def test_no_shared_cache_is_read_or_written(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    folder = tmp_path_factory.mktemp("shared")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    JiebaWords().split("我来到北京")
    assert list(folder.iterdir()) == []


def test_a_user_word_is_kept_whole_and_jieba_itself_learns_nothing(jieba: Any) -> None:
    text = "我们在石墨烯电池厂训练大语言模型"
    assert "大语言模型" not in ours().split(text).words
    mine = JiebaWords(("大语言模型", "石墨烯电池厂 100"))
    words = mine.split(text).words
    assert {"大语言模型", "石墨烯电池厂"} <= set(words)
    assert "".join(words) == text
    assert "大语言模型" not in ours().split(text).words
    assert "大语言模型" not in list(jieba.cut(text))


def test_the_users_words_are_part_of_what_decides_the_results() -> None:
    plain = describe_segmenter("jieba", "zh")
    one = describe_segmenter("jieba", "zh", ("大语言模型",))
    other = describe_segmenter("jieba", "zh", ("大语言模型 5",))
    assert "user_words" not in plain
    assert one["user_words"] != other["user_words"]
    assert {**one, "user_words": ""} == {**plain, "user_words": ""}


def test_a_user_dictionary_is_read_as_jieba_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("\ufeff大语言模型\r\n石墨烯 100 n\n\n云计算 nz\n大语言模型\n", encoding="utf-8")
    assert read_user_words(path) == ("大语言模型", "石墨烯 100", "云计算")


@pytest.mark.parametrize("data", [b"\xff", b"a b c d", "词 x 5".encode(), b"a\n" * 2_000_000])
def test_a_user_dictionary_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "words.txt").write_bytes(data)
    with pytest.raises(InputError, match=r"words\.txt"):
        read_user_words(tmp_path / "words.txt")
    with pytest.raises(InputError, match="There is no user dictionary"):
        read_user_words(tmp_path / "nowhere")


@pytest.mark.parametrize("words", [("a b",), ("词 0",), ("",), ("x" * 65,), ("词" * 60,) * 10_000])
def test_settings_take_no_words_that_are_none(words: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        CorpusConfig(language="zh", user_words=words)


def test_a_model_prepares_text_with_the_words_of_its_corpus() -> None:
    config = CorpusConfig(language="zh", user_words=("大语言模型",))
    carried = Preparation.from_manifest(Preparation.of(config).to_manifest())
    assert "大语言模型" in TextPreprocessor.of_model(carried)("训练大语言模型。").words.words
