"""Sentences end where spaCy's sentencizer ends them, but for quotes; long ones are cut evenly."""

import importlib
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from required import need_package

from polyseme.text.segmenters import Segmenter, WordSpans, load_segmenter
from polyseme.text.sentences import FINAL_MARKS, split_long, split_sentences
from polyseme.text.settings import SegmenterName


def spans_of(words: list[str]) -> WordSpans:
    """Words with a space between any two."""
    return WordSpans(words, [sum(map(len, words[:n])) + n for n in range(len(words))])


def texts(spaced: str) -> list[str]:
    words = spaced.split(" ")
    return [" ".join(words[begin:end]) for begin, end in split_sentences(spans_of(words))]


def english(text: str) -> list[str]:
    found = load_segmenter("spacy", "en").split(text)
    starts = [found.starts[begin] for begin, _ in split_sentences(found)]
    return [text[begin:end].strip() for begin, end in pairwise([*starts, len(text)])]


def chinese(text: str) -> list[str]:
    found = load_segmenter("characters", "zh").split(text)
    return ["".join(found.words[begin:end]) for begin, end in split_sentences(found)]


@pytest.mark.parametrize(
    ("split", "text", "expected"),
    [
        (texts, "It rains . It snows ! Why ?", "It rains .|It snows !|Why ?"),
        (texts, "“ Stop ! ” ) He stopped .", "“ Stop ! ” )|He stopped ."),
        (texts, "What ?! Nothing ！！ 好", "What ?!|Nothing ！！|好"),
        (texts, "Well ... perhaps … not .", "Well ... perhaps … not ."),
        (texts, "Dr. No met Mr. Bond .", "Dr. No met Mr. Bond ."),
        (texts, "One . two", "One .|two"),
        (texts, ". ! )", ". ! )"),
        (chinese, "天下雨。他说：“好！”走了。", "天下雨。|他说：“好！”|走了。"),
        # An opening quote or bracket begins a sentence; a straight quote belongs to the word that
        # it touches, and opens if the last one closed where it touches none.
        (english, "He left. “Why?” (No one knew.) ‘Ah.’", "He left.|“Why?”|(No one knew.)|‘Ah.’"),
        (chinese, "他走了。“为何？”「不知。」《诗》曰", "他走了。|“为何？”|「不知。」|《诗》曰"),
        (texts, "He left . “ Why ? ” ( Nobody", "He left .|“ Why ? ”|( Nobody"),
        (english, 'He left. "Why?" She knew.', 'He left.|"Why?"|She knew.'),
        (english, "He left. 'Why?' She knew.", "He left.|'Why?'|She knew."),
        (texts, 'He left . " Why ? " She knew . " Ah .', 'He left .|" Why ? "|She knew .|" Ah .'),
        (english, "„Warum?“ Er ging. »Nie!« Ich auch.", "„Warum?“|Er ging.|»Nie!«|Ich auch."),
        # A quotation, or what stands in brackets, is part of the sentence around it.
        (english, "“Why?” she asked. “Who?” Nobody knew.", "“Why?” she asked.|“Who?”|Nobody knew."),
        (english, '"Why?" she asked. Hurry! we said.', '"Why?" she asked.|Hurry!|we said.'),
        (english, "They left (who knew? Not I.) that day. (Nobody asked.) Then it rained.",
         "They left (who knew? Not I.) that day.|(Nobody asked.)|Then it rained."),
        (texts, "其 名 【 名 ： 通 铭 。 】 者 长 。 ( 原 缺 。 ) 里",
         "其 名 【 名 ： 通 铭 。 】 者 长 。|( 原 缺 。 )|里"),
        (english, "He came :( too late. She left. Nobody knew.",
         "He came :( too late.|She left.|Nobody knew."),
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_ends_them(
    split: Callable[[str], list[str]], text: str, expected: str
) -> None:
    assert split(text) == expected.split("|")


def test_no_words_make_no_sentence_and_an_open_bracket_joins_none() -> None:
    assert split_sentences(spans_of([])) == []
    assert len(split_sentences(spans_of(["a", "(", *["b", "."] * 200]))) == 200


@given(
    st.lists(st.sampled_from(["a", ".", "?!", "...", ")", "中", "。", "x.", '"', "“"]), max_size=30)
)
def test_sentences_cover_every_word_once(words: list[str]) -> None:
    spans = split_sentences(spans_of(words))
    edges = [0, *(end for _, end in spans)]
    assert spans == list(pairwise(edges))
    assert edges[-1] == len(words)


def sentencizer() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from spacy.pipeline import Sentencizer
    return Sentencizer


def test_all_of_spacys_final_marks_are_ours() -> None:
    single = {mark for mark in sentencizer().default_punct_chars if len(mark) == 1}
    assert single <= FINAL_MARKS


class _Split:
    """spaCy's own way with words that ours has found."""

    def __init__(self, segmenter: Segmenter) -> None:
        import spacy

        self._segmenter = segmenter
        self._vocabulary = spacy.blank("en").vocab
        self._sentencizer = sentencizer()()

    def ours(self, text: str) -> list[tuple[int, int]]:
        return split_sentences(self._words(text))

    def theirs(self, text: str) -> list[tuple[int, int]]:
        from spacy.tokens import Doc

        document = self._sentencizer(Doc(self._vocabulary, words=self._words(text).words))
        return [(sentence.start, sentence.end) for sentence in document.sents]

    def _words(self, text: str) -> WordSpans:
        return self._segmenter.split(text)


@pytest.mark.parametrize(
    ("language", "segmenter"), [("en", "spacy"), ("zh", "characters"), ("zh", "jieba")]
)
def test_examples_are_split_as_spacys_sentencizer_splits_them(
    language: str, segmenter: SegmenterName
) -> None:
    if segmenter == "jieba":
        need_package("jieba")
    examples = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    split = _Split(load_segmenter(segmenter, language))
    for text in [*examples, " ".join(examples), f"“{examples[0]}!”"]:
        assert split.ours(text) == split.theirs(text)


@given(length=st.integers(1, 2000), begin=st.integers(0, 50), longest=st.integers(8, 300))
def test_a_long_sentence_is_cut_into_even_parts(length: int, begin: int, longest: int) -> None:
    parts = split_long(begin, begin + length, longest)
    sizes = [end - start for start, end in parts]
    assert sum(sizes) == length
    assert parts[0][0] == begin
    assert all(before[1] == after[0] for before, after in pairwise(parts))
    assert max(sizes) <= longest
    assert max(sizes) - min(sizes) <= 1


def test_no_more_parts_are_made_than_needed() -> None:
    assert [len(split_long(0, n, 250)) for n in (1, 250, 251, 500, 501)] == [1, 1, 2, 2, 3]
