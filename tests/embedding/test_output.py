"""Which layers come out, and what a sentence's vector is.

Where the words of a text stand, in English and in Chinese, normalized or not.
"""

import importlib.util
import unicodedata
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from required import needs

from embedding.making import reading
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import EmbeddedSentence, LayerChoice
from polyseme.errors import ConfigError
from polyseme.text.preprocessing import TextPreprocessor

EACH = [torch.full((1, 2, 4), float(value)) for value in (1, 10, 100)]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("all", [1, 10, 100]),
        ("top", [100]),
        ("average", [37]),
        (0, [1]),
        (2, [100]),
        (-1, [100]),
        ((1, 0, 0), [1]),
        ([0.5, 0.2, 0.01], [3.5]),
        (np.array([0.5, 0.2, 0.01]), [3.5]),
    ],
)
def test_one_word_says_which_layers(wish: Any, expected: list[float]) -> None:
    choice = LayerChoice(wish, 3)
    found = choice(EACH)
    assert choice.num_layers == len(found) == len(expected)
    assert choice.is_one == (len(expected) == 1)
    for layer, value in zip(found, expected, strict=True):
        assert torch.allclose(layer, torch.full((1, 2, 4), float(value)))


@pytest.mark.parametrize(
    "wish",
    [3, -4, "bottom", "1", (1, 2), (1, 2, 3, 4), (1, 2, float("nan")), None, True],
)
def test_what_the_model_does_not_have_is_refused_with_what_it_has(wish: Any) -> None:
    with pytest.raises(ConfigError, match="'average', a number from 0 to 2, or 3 weights"):
        LayerChoice(wish, 3)


def test_a_sentence_vector_is_the_mean_over_its_words() -> None:
    vectors = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    sentence = EmbeddedSentence(("a", "b", "c"), vectors, 0)
    expected = (vectors[:, 0] + vectors[:, 1] + vectors[:, 2]) / 3
    assert np.allclose(sentence.sentence_vector(), expected)
    top = EmbeddedSentence(("a", "b", "c"), vectors[1], 0)
    assert np.allclose(top.sentence_vector(), expected[1])


def test_ends_follow_from_starts_and_words() -> None:
    sentence = EmbeddedSentence(("a", "𝒜b"), np.empty((2, 2, 4), np.float32), 0, (3, 5))
    assert sentence.ends == (4, 7)


CHINESE = "她弹钢琴。今天是周日，下雨了！\n我们在银行门口等他。"
has_chinese = needs(
    bool(importlib.util.find_spec("jieba") and importlib.util.find_spec("opencc")), "the extra [zh]"
)


def check_places(embedder: Embedder, text: str) -> None:
    """Every word stands where it is said to, in order, none left out."""
    normalized, reached = embedder.normalize(text), 0
    for sentence in embedder.embed(text):
        assert sentence.starts is not None
        assert sentence.ends is not None
        for word, start, end in zip(sentence.words, sentence.starts, sentence.ends, strict=True):
            assert normalized[start:end] == word
            assert not normalized[reached:start].strip()
            reached = end
    assert not normalized[reached:].strip()


def test_places_are_those_of_the_given_text(english: Embedder) -> None:
    text = "  The cat, the   cat\n(it's old) purrs.  \tDon't!  The the The."
    assert english.normalize(text) == text.replace("\n", " ")
    check_places(english, text)
    assert english.embed(text)[0].starts == (2, 6, 9, 11, 17, 21, 22, 24, 27, 30, 32, 37)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"]), max_size=40))
def test_places_are_right_in_any_text(english: Embedder, text: str) -> None:
    check_places(english, text)


def test_sentences_are_those_the_corpus_would_have(english: Embedder) -> None:
    text = "Dr. Fox howls. " * 3 + "cat " * 300
    preprocess = TextPreprocessor.of_model(english.model.preparation)
    expected = [sentence.words for sentence in preprocess(text).stored()]
    found = english.embed(text)
    assert [list(sentence.words) for sentence in found[:3]] == expected[:3]
    assert list(found[3].words) == [word for part in expected[3:] for word in part]
    assert found[3].truncation.chunks == len(expected[3:]) == 2


def test_places_are_those_of_the_normalized_text_where_letters_were_joined() -> None:
    embedder = reading("Le café est là .", language="en", unicode_normalization="NFC")
    text = unicodedata.normalize("NFD", "Le café est là .")
    [sentence] = embedder.embed(text)
    assert sentence.words == ("Le", "café", "est", "là", ".")
    assert sentence.starts == (0, 3, 8, 12, 15)  # in the text as given, `est` stands at 9
    assert len(embedder.normalize(text)) == len(text) - 2
    check_places(embedder, text)


@has_chinese
@pytest.mark.parametrize("segmenter", ["jieba", "characters"])
def test_chinese_text_is_read_as_the_corpus_was(segmenter: str) -> None:
    embedder = reading("她 弹 钢琴 今天", language="zh", segmenter=segmenter)
    found = embedder.embed(CHINESE)
    assert ["".join(sentence.words) for sentence in found] == [
        "她弹钢琴。",
        "今天是周日，下雨了！",
        "我们在银行门口等他。",
    ]
    check_places(embedder, CHINESE)
    assert found[2].starts is not None
    assert found[2].starts[0] == CHINESE.index("我")
    one = embedder.embed([["她", "弹", "钢琴"]])[0]
    assert one.vectors.shape[1] == 3


@has_chinese
def test_traditional_characters_are_folded_and_stay_in_place() -> None:
    embedder = reading("她 弹 钢琴 今天", language="zh", script="simplified")
    traditional = "她彈鋼琴。今天是週日，下雨了！"
    found = embedder.embed(traditional)
    assert "".join(found[0].words) == "她弹钢琴。"
    check_places(embedder, traditional)
    assert found[1].starts is not None
    assert traditional[found[1].starts[0]] == "今"


@has_chinese
def test_short_chinese_texts_are_not_taken_for_words() -> None:
    embedder = reading("她 弹 钢琴 今天", language="zh")
    assert len(embedder.embed(["今天是周日", "她弹钢琴"])) == 2
