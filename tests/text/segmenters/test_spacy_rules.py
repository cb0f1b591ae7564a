"""The same words as spaCy's own, for every language whose words it finds by rules.

Chinese characters one by one, other words whole; or what stands between spaces.
"""

import importlib
import pkgutil
import re
import sys
import unicodedata
from functools import lru_cache
from typing import Any

import pytest
import spacy.lang
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.util import get_lang_class

from polyseme.errors import ConfigError
from polyseme.text.segmenters import describe_segmenter, spacy_rules
from polyseme.text.segmenters.patterns import Characters, Segmenter, Whitespace
from polyseme.text.segmenters.spacy_rules import SpacyRules

Placed = list[tuple[str, int]]


def by_rules() -> list[str]:
    """Languages whose tokenizer works by rules alone, `xx` (of no language) among them."""
    codes = [module.name for module in pkgutil.iter_modules(spacy.lang.__path__)]
    found = []
    for code in codes:
        if len(code) <= 3:
            settings_of_language = get_lang_class(code).default_config["nlp"]["tokenizer"]
            if settings_of_language["@tokenizers"] == "spacy.Tokenizer.v1":
                found.append(code)
    return found


@lru_cache
def rules(language: str) -> SpacyRules:
    return SpacyRules(language)


def spacys_own(language: str) -> Any:
    """spaCy's tokenizer, shared with ours because a second one takes a second to make."""
    return rules(language)._tokenizer


def their_words(language: str, text: str) -> Placed:
    return [(word.text, word.idx) for word in spacys_own(language)(text) if not word.text.isspace()]


def our_words(segmenter: SpacyRules, text: str) -> Placed:
    found = segmenter.split(text)
    return list(zip(found.words, found.starts, strict=True))


def holds_long_chunk(text: str) -> bool:
    """Whether a chunk is beyond what spaCy is asked for: Tibetan clauses have many marks."""
    marks = [sum(unicodedata.category(c)[0] == "P" for c in chunk) for chunk in text.split()]
    return max(marks, default=0) > spacy_rules._MOST_MARKS


def examples_of(language: str) -> list[str]:
    try:
        found: list[str] = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    except ModuleNotFoundError:
        return []
    return found


def test_most_languages_of_spacy_are_found_by_rules() -> None:
    assert len(by_rules()) >= 60
    assert {"en", "de", "fr", "ru", "ar", "hi", "xx"} <= set(by_rules())


USUAL = {"ar", "de", "en", "es", "fi", "fr", "hi", "id", "it", "ru", "tr", "xx"}


@pytest.mark.parametrize(
    "language",
    [code if code in USUAL else pytest.param(code, marks=pytest.mark.long) for code in by_rules()],
)
def test_examples_and_stop_words_are_split_as_spacy_splits_them(language: str) -> None:
    examples = examples_of(language)
    stop_words = sorted(get_lang_class(language).Defaults.stop_words)
    quoted = [f"“{text}” ({text}), '{text}'; {text}?!" for text in examples]
    listed = [", ".join(stop_words), '"' + '" ("'.join(stop_words) + ").", " ".join(stop_words)]
    for text in [*examples, *quoted, *listed, *stop_words]:
        expected = their_words(language, text)
        if any(" " in word for word, _ in expected) or holds_long_chunk(text):
            continue  # spaCy would make a word with a space in it
        assert our_words(rules(language), text) == expected


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "it", "ru"])
def test_the_special_words_of_a_language_are_split_as_spacy_splits_them(language: str) -> None:
    # Words: the faces among the rules, `:-)`, have their own way of meeting other marks.
    special = [
        word for word in sorted(spacys_own(language).rules) if word[0].isalpha() and " " not in word
    ]
    for word in special:
        text = f"{word} ({word}) {word}, “{word}” x/{word} 'tis"
        assert our_words(rules(language), text) == their_words(language, text), word


ATOMS = re.split(
    " ",
    "word A 3 km don't 's ' \" U.S. a.m. 10 $ , . ... ! ? can not cannot I'm Mr. / & é 中文 😀 “ ” "
    "’s o'clock _ # 1,000 2.5 % e.g. gonna dont - ( ) ; : http://x.y/z n't 10km etc. ’ A.B.",
)
TEXTS = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", " ", " ", "  ", "\n", "\u3000"])),
    max_size=12,
).map(lambda parts: "".join(atom + gap for atom, gap in parts))


@settings(max_examples=300, deadline=None)
@given(st.one_of(TEXTS, st.text(max_size=200)))
def test_words_lie_where_their_starts_say_and_none_is_lost(text: str) -> None:
    found = our_words(rules("en"), text)
    assert all(text[start : start + len(word)] == word for word, start in found)
    assert "".join(word for word, _ in found) == "".join(text.split())


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("hi", "हिन्दी/" * 20 + "e\u0301", ["हिन्दी", "/"] * 20 + ["e\u0301"]),
        ("en", "a\tb\nc\u00a0d\u2003e\u3000f  g", list("abcdefg")),
        ("en", "(" * 1000 + "word" + ")" * 1000, [*"(" * 1000, "word", *")" * 1000]),
        ("en", "-" * 80 + " " + "." * 80, ["-" * 80, "." * 80]),
        # A rule with a space makes no word with a space.
        ("es", "de EE. UU. vino", ["de", "EE", ".", "UU", ".", "vino"]),
    ],
)
def test_what_rules_do_not_foresee_is_split_plainly(
    language: str, text: str, words: list[str]
) -> None:
    assert [word for word, _ in our_words(rules(language), text)] == words


@pytest.mark.parametrize(
    "text",
    [
        "'s, he said",
        "and/etc.",
        "…Mr. X",
        "he (i.e. she):",
        '"e.g."',
        "<3, you",
        "(e.g., this)",
        "word): word:) word.)",
        "’s?",
        "it's.”",
        "rock'n'roll's",
        "U.S.-based",
        "10km, 5%.",
    ],
)
def test_a_mark_that_makes_a_word_of_the_rules_stays_in_it(text: str) -> None:
    assert our_words(rules("en"), text) == their_words("en", text)


def test_an_answer_does_not_depend_on_what_was_asked_before() -> None:
    texts = [text for text in examples_of("en") for _ in range(2)]
    fresh = [our_words(SpacyRules("en"), text) for text in texts]
    assert [our_words(rules("en"), text) for text in reversed(texts)] == fresh[::-1]


def test_forgetting_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_rules, "_GENERATION", 3)
    forgetful = SpacyRules("en")
    for text in examples_of("en") * 2:
        assert our_words(forgetful, text) == their_words("en", text)


def test_what_is_remembered_is_bounded_within_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spacy_rules, "_GENERATION", 100)
    segmenter = SpacyRules("en")
    segmenter.split(" ".join(f"word{i}," for i in range(2000)))
    assert len(segmenter._young) + len(segmenter._old) <= 210


@pytest.mark.parametrize("language", ["zh", "ja", "nonsense"])
def test_a_language_without_rules_is_refused_with_advice(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("sudachipy", "pkuseg", "spacy_pkuseg"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"{language}.*--segmenter"):
        SpacyRules(language)


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
def test_words_lie_where_their_starts_say_and_none_is_lost_of_patterns(
    segmenter: Segmenter, text: str
) -> None:
    found = segmenter.split(text)
    pairs = list(zip(found.words, found.starts, strict=True))
    assert all(text[start : start + len(word)] == word for word, start in pairs)
    assert "".join(found.words) == "".join(text.split())


def test_a_pattern_is_described_by_name_and_version() -> None:
    assert describe_segmenter("characters", "zh").keys() == {"name", "version"}
