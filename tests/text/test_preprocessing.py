"""Text prepared in use as in training, or refused.

Text made fit for storing, or refused with the reason.

Sentences end where spaCy's sentencizer ends them, but for quotes; long ones are cut evenly.
"""

import importlib
import unicodedata
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining.making import rule_corpus
from required import need_package

from polyseme.errors import CorpusError, InputError, ModelError
from polyseme.text.preprocessing import (
    FINAL_MARKS,
    Preparation,
    TextPreprocessor,
    UnfitTextError,
    describe_script,
    normalize,
    original_offsets,
    split_long,
    split_sentences,
)
from polyseme.text.segmenters import load_segmenter
from polyseme.text.segmenters.patterns import Segmenter, WordSpans
from polyseme.text.settings import SegmenterName
from text.making import make_config


@pytest.fixture(scope="module")
def preparation(tmp_path_factory: pytest.TempPathFactory) -> Preparation:
    return rule_corpus(Path(tmp_path_factory.mktemp("preparation"))).preparation


def stored(preparation: Preparation, text: str) -> list[list[str]]:
    preprocess = TextPreprocessor.of_model(preparation)
    return [sentence.words for sentence in preprocess(text).stored()]


def test_text_is_split_as_the_corpus_was(preparation: Preparation) -> None:
    assert stored(preparation, "The old cat purrs. Don't ask Dr. Fox!") == [
        ["The", "old", "cat", "purrs", "."],
        ["Do", "n't", "ask", "Dr.", "Fox", "!"],
    ]
    assert [len(words) for words in stored(preparation, "cat " * 300)] == [150, 150]
    assert Preparation.from_manifest(preparation.to_manifest()) == preparation


def test_offsets_are_those_of_the_normalized_text() -> None:
    found = TextPreprocessor(make_config())("One  two.\x0c Three . Four")
    assert found.text == "One  two.  Three . Four"
    assert found.has_controls
    assert [(s.words, s.starts) for s in found.whole()] == [
        (["One", "two.", "Three", "."], [0, 5, 11, 17]),
        (["Four"], [19]),
    ]


def test_another_segmenter_version_is_refused(preparation: Preparation) -> None:
    other = {**preparation.to_manifest(), "segmenter": {"name": "spacy", "version": "0.1"}}
    with pytest.raises(CorpusError, match=r"\(0\.1\)"):
        TextPreprocessor.of_model(Preparation.from_manifest(other))


def test_a_model_that_does_not_say_how_is_given_words_only() -> None:
    with pytest.raises(ModelError, match="lists of words"):
        TextPreprocessor.of_model(None)


def test_what_is_wrong_in_a_manifest_is_named(preparation: Preparation) -> None:
    good = preparation.to_manifest()
    for name, wrong in (("settings", {}), ("segmenter", {"name": "x"}), ("script", 3)):
        with pytest.raises(ValueError, match=rf"preparation\.{name}"):
            Preparation.from_manifest({**good, name: wrong})
    with pytest.raises(ValueError, match=r"preparation\.segmenter\.more"):
        Preparation.from_manifest({**good, "segmenter": {**good["segmenter"], "more": "x"}})


def test_binary_data_is_refused(preparation: Preparation) -> None:
    with pytest.raises(InputError, match="nul-character"):
        stored(preparation, "a\0b")


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
