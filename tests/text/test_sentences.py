"""Sentences end where spaCy's sentencizer ends them, but for quotes; long ones are cut evenly."""

import importlib
import warnings
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


def test_a_final_mark_ends_a_sentence() -> None:
    assert texts("It rains . It snows ! Why ?") == ["It rains .", "It snows !", "Why ?"]


def test_closing_marks_belong_to_the_sentence_before() -> None:
    assert texts("“ Stop ! ” ) He stopped .") == ["“ Stop ! ” )", "He stopped ."]


def test_a_run_of_final_marks_in_one_word_ends_a_sentence() -> None:
    assert texts("What ?! Nothing ！！ 好") == ["What ?!", "Nothing ！！", "好"]


def test_an_ellipsis_ends_no_sentence() -> None:
    assert texts("Well ... perhaps … not .") == ["Well ... perhaps … not ."]


def test_an_abbreviation_kept_whole_ends_no_sentence() -> None:
    assert texts("Dr. No met Mr. Bond .") == ["Dr. No met Mr. Bond ."]


def test_what_follows_the_last_mark_is_a_sentence_too() -> None:
    assert texts("One . two") == ["One .", "two"]


def test_no_words_make_no_sentence() -> None:
    assert split_sentences(spans_of([])) == []


def test_marks_alone_are_one_sentence() -> None:
    assert split_sentences(spans_of([".", "!", ")"])) == [(0, 3)]


def test_chinese_sentences_end_at_chinese_marks() -> None:
    assert chinese("天下雨。他说：“好！”走了。") == ["天下雨。", "他说：“好！”", "走了。"]


def test_an_opening_quote_or_bracket_begins_a_sentence() -> None:
    assert english("He left. “Why?” (Nobody knew.) ‘Well.’") == [
        *("He left.", "“Why?”", "(Nobody knew.)", "‘Well.’")
    ]
    assert chinese("他走了。“为何？”「不知。」《诗》曰") == [
        "他走了。",
        "“为何？”",
        "「不知。」",
        "《诗》曰",
    ]
    assert texts("He left . “ Why ? ” ( Nobody") == ["He left .", "“ Why ? ”", "( Nobody"]


def test_a_straight_quote_belongs_to_the_word_it_touches() -> None:
    assert english('He left. "Why?" She knew.') == ["He left.", '"Why?"', "She knew."]
    assert english("He left. 'Why?' She knew.") == ["He left.", "'Why?'", "She knew."]


def test_a_straight_quote_that_touches_nothing_opens_if_the_last_one_closed() -> None:
    assert texts('He left . " Why ? " She knew . " Ah .') == [
        *("He left .", '" Why ? "', "She knew .", '" Ah .')
    ]


def test_a_mark_that_opens_in_english_closes_in_german() -> None:
    assert english("„Warum?“ Er ging. »Nie!« Ich auch.") == [
        *("„Warum?“", "Er ging.", "»Nie!«", "Ich auch.")
    ]


def test_a_quotation_is_part_of_the_sentence_that_reports_it() -> None:
    assert english("“Why?” she asked. “Who?” Nobody knew.") == [
        *("“Why?” she asked.", "“Who?”", "Nobody knew.")
    ]
    assert english('"Why?" she asked. Hurry! we said.') == [
        *('"Why?" she asked.', "Hurry!", "we said.")
    ]


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


def test_what_stands_in_brackets_within_a_sentence_is_part_of_it() -> None:
    assert english("They left (who knew? Not I.) that day. (Nobody asked.) Then it rained.") == [
        *("They left (who knew? Not I.) that day.", "(Nobody asked.)", "Then it rained.")
    ]
    assert texts("其 名 【 名 ： 通 铭 。 】 者 长 。 ( 原 缺 。 ) 里") == [
        *("其 名 【 名 ： 通 铭 。 】 者 长 。", "( 原 缺 。 )", "里")
    ]


def test_a_bracket_that_is_never_closed_joins_no_sentences() -> None:
    assert english("He came :( too late. She left. Nobody knew.") == [
        *("He came :( too late.", "She left.", "Nobody knew.")
    ]
    words = ["a", "(", *["b", "."] * 200]
    assert len(split_sentences(spans_of(words))) == 200
