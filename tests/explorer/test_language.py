"""English and Chinese say the same things."""

import re
import string
from pathlib import Path

from polyseme.explorer import language
from polyseme.explorer.language import LANGUAGES, Language, choose_language, sentences

EXPLORER = Path(language.__file__).parent
MADE = ("change_", "condition_", "edit_", "method_", "movement_", "query_", "trust_", "unit_")
"""Beginnings of keys that are put together in a template."""


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_sentences_with_the_same_values() -> None:
    english, chinese = (sentences(code) for code in LANGUAGES)
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert places(text) == places(chinese[key]), key
        assert text != chinese[key] or key in ("title",), key


def test_every_sentence_that_a_page_says_is_there_and_none_is_idle() -> None:
    files = [*EXPLORER.glob("templates/*.html"), *EXPLORER.glob("*.py")]
    pages = "\n".join(path.read_text(encoding="utf-8") for path in files)
    said = set(re.findall(r'"([a-z_0-9]+)"|\'([a-z_0-9]+)\'', pages))
    named = {name for pair in said for name in pair if name}
    idle = {key for key in sentences("en") if key not in named and not key.startswith(MADE)}
    assert idle == set()
    direct = set(re.findall(r"""(?:say|PageError|told_as)\(["']([a-z_0-9]+)["'][,)]""", pages))
    assert direct <= sentences("en").keys()


def test_one_is_never_told_in_the_plural_in_english() -> None:
    """Whatever is counted: every number of every sentence is put to one."""
    plural = re.compile(r"\b1 (?!was)\w{2,}s\b|\b1 \w+ are\b|\bare 1\b")
    told = {
        key: Language("en")(key, **dict.fromkeys(places(text), 1))
        for key, text in sentences("en").items()
    }
    assert {key for key, text in told.items() if plural.search(text)} == NEVER_ONE
    assert Language("en")("uses", n=1) == "1 use"
    assert Language("en")("uses", n=0) == "0 uses"
    assert Language("en")("steps", n=-1) == "-1 step"
    assert Language("zh")("uses", n=1) == "1 个用例"


NEVER_ONE = {
    "sample", "all_lines", "jsd", "bits", "score_total", "bad_name", "too_long", "too_many_fields",
    "form_too_large", "too_many_words", "condition_too_long", "condition_too_many",
    "query_too_long", "query_too_large",
    "condition_not_all_numbers", "change_changed", "change_apart", "change_alike", "trust_unlike",
}  # fmt: skip
"""Limits, what is shown only of many, numbers with decimals, and operators before a verb."""


def test_numbers_are_written_with_their_thousands_apart() -> None:
    assert Language("en")("uses", n=12345) == "12,345 uses"


def test_the_address_decides_then_the_corpus_then_the_browser() -> None:
    assert choose_language("zh", "en", "en") == "zh"
    assert choose_language("", "en-GB,zh", "zh") == "zh"
    assert choose_language("", "fr, zh-CN;q=0.8", "") == "zh"
    assert choose_language("xx", "fr", "") == "en"
