"""Names of groups: what is their own, not what is frequent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyseme.meanings.concordance.background import Background
from polyseme.meanings.groups.names import GroupName, NameSource, first_copies

RIVER = ["from", "the", "green", "bank", "of", "the", "river", "Thames", "they", "swam"]
MONEY = ["with", "the", "central", "bank", "he", "had", "an", "account", "in", "London"]
FEW = ["the", "of", "he", "they", "with", "from", "an", "in", "had", "在", "里"]
COMMON = Background.of_sentences([FEW * 50, [f"rare{n}" for n in range(1_000)]])


def source(sentences: Sequence[Sequence[str]], **given: Any) -> NameSource:
    """Uses of *bank*, each in its sentence."""
    spans = np.array([(words.index("bank"), words.index("bank") + 1) for words in sentences])
    return NameSource(sentences, spans, COMMON, **given)


def varied(sentence: Sequence[str], number: int) -> list[str]:
    """The same words in the same places, but for the first."""
    return [f"x{number}", *sentence[1:]]


def of_two_groups() -> tuple[NameSource, np.ndarray]:
    sentences = [varied(RIVER, n) for n in range(10)] + [varied(MONEY, n) for n in range(10)]
    return source(sentences), np.array([0] * 10 + [1] * 10)


def test_what_stands_near_one_group_names_it_and_what_is_common_does_not() -> None:
    uses, labels = of_two_groups()
    first, second = uses.names(labels)
    assert set(first.collocates) == {"green", "river", "Thames", "swam"}
    assert set(second.collocates) == {"central", "account", "London"}


def test_frames_are_words_in_a_row_that_end_in_something() -> None:
    uses, labels = of_two_groups()
    first, second = uses.names(labels)
    assert "~ of the river" in first.frames
    assert second.frames == ("the central ~",)


def test_a_single_group_is_named_against_the_corpus() -> None:
    sentences = [varied(RIVER, n) for n in range(10)]
    (only,) = source(sentences).names(np.zeros(10, np.int64))
    assert "river" in only.collocates
    assert "the" not in only.collocates


def test_a_document_counts_at_most_twice() -> None:
    sentences = [[f"x{n}", "they", "bank"] for n in range(20)] + [
        varied(MONEY, n) for n in range(20)
    ]
    for row in range(8):
        sentences[row][1] = "Bounderby"
    labels = np.array([0] * 20 + [1] * 20)
    apart = [str(row) for row in range(40)]
    in_one = ["Hard Times" if row < 8 else str(row) for row in range(40)]
    with_name = source(sentences, documents=apart).names(labels)[0]
    without = source(sentences, documents=in_one).names(labels)[0]
    assert with_name.collocates == ("Bounderby",)
    assert "Bounderby" not in without.collocates


def test_of_ten_long_books_each_counts_more_than_twice() -> None:
    """Or a word in all lines would count no more than one that each book has twice."""
    sentences = []
    for row in range(500):
        second = "rare" if row % 50 < 2 else f"x{row}"
        sentences.append(["xcommon", second, "bank"])
    books = [str(row // 50) for row in range(500)]
    [name] = source(sentences, documents=books).names(np.zeros(500, np.int64))
    assert name.collocates[0] == "xcommon"


def test_forms_of_one_word_are_one_name() -> None:
    sentences = []
    for row in range(12):
        words = varied(RIVER, row)
        words[9] = ("swims", "swimming", "swim")[row % 3]
        sentences.append(words)
    sentences += [varied(MONEY, n) for n in range(12)]
    (first, _) = source(sentences).names(np.array([0] * 12 + [1] * 12))
    assert sum(word.startswith("swim") for word in first.collocates) <= 1


def test_a_name_has_its_usual_case_not_that_of_a_beginning() -> None:
    sentences = [["River", "and", *varied(RIVER, n)[3:]] for n in range(10)]
    sentences += [varied(MONEY, n) for n in range(10)]
    (first, second) = source(sentences).names(np.array([0] * 10 + [1] * 10))
    assert "river" in first.collocates
    assert "London" in second.collocates


def test_substitutes_are_expected_more_here_than_in_any_other_group() -> None:
    uses, labels = of_two_groups()
    expected = np.array([[0, 2]] * 10 + [[1, 2]] * 10, np.int32)
    uses = source(uses.sentences, substitutes=expected, words=["shore", "company", "thing"])
    first, second = uses.names(labels)
    assert (first.substitutes, second.substitutes) == (("shore",), ("company",))
    assert uses.names(labels, with_substitutes=False)[0].substitutes == ()


def test_names_do_not_depend_on_the_order_of_uses() -> None:
    uses, labels = of_two_groups()
    documents = [str(row % 12) for row in range(20)]
    order = np.random.default_rng(1).permutation(20)
    moved = [uses.sentences[row] for row in order]
    one = source(uses.sentences, documents=documents).names(labels)
    two = source(moved, documents=[documents[row] for row in order]).names(labels[order])
    assert one == two


def test_copies_of_a_line_count_once() -> None:
    spam = ["click", "here", "for", "more", "bank", "news", "and", "weather", "today"]
    sentences = [spam] * 6 + [varied(RIVER, n) for n in range(10)]
    uses = source(sentences)
    copies = first_copies(sentences, uses.spans)
    assert len(set(copies[:6].tolist())) == 1
    labels = np.array([0] * 6 + [1] * 10)
    assert "click" in uses.names(labels)[0].collocates
    assert source(sentences, copy_of=copies).names(labels)[0] == GroupName()


def test_short_lines_and_lines_that_share_little_are_no_copies() -> None:
    sentences = [["yes", "bank"], ["yes", "bank"], RIVER, MONEY]
    assert first_copies(sentences, source(sentences).spans).tolist() == [0, 1, 2, 3]


def test_a_name_in_chinese_has_no_spaces_within() -> None:
    sentences = [[f"甲{n}", "散", "bank", "在", "公园", "里"] for n in range(10)]
    sentences += [[f"乙{n}", "看", "bank", "很", "便宜"] for n in range(10)]
    first, _ = source(sentences).names(np.array([0] * 10 + [1] * 10))
    assert set(first.frames) == {"~在公园", "散~"}
