"""Names of groups: what is their own, not what is frequent."""

import numpy as np

from polyseme.meanings.groups.names import collocates_of, distinctive_words, substitutes_of


def test_words_of_one_group_name_it_and_words_of_both_do_not() -> None:
    labels = np.array([0] * 10 + [1] * 10)
    words = [["the", "river", "water"]] * 10 + [["the", "money", "account"]] * 10
    first, second = distinctive_words(labels, words)
    assert set(first) == {"river", "water"}
    assert set(second) == {"money", "account"}


def test_what_is_certain_comes_first() -> None:
    labels = np.array([0] * 30 + [1] * 30)
    words = [["often"] + (["seldom"] if n < 4 else []) for n in range(30)] + [["other"]] * 30
    assert distinctive_words(labels, words)[0] == ("often", "seldom")


def test_a_word_in_two_uses_is_no_name() -> None:
    labels = np.array([0] * 5 + [1] * 5)
    words = [["rare", "x"]] * 2 + [["x"]] * 3 + [["y"]] * 5
    assert distinctive_words(labels, words)[0] == ("x",)


def test_a_word_counts_once_a_use() -> None:
    labels = np.array([0] * 6 + [1] * 6)
    words = [["a"] * 50] + [["b"]] * 5 + [["c"]] * 6
    assert distinctive_words(labels, words)[0] == ("b",)


def test_a_single_group_is_named_by_its_most_frequent_words() -> None:
    words = [["a", "b"], ["a"], ["c", "a"]]
    assert distinctive_words(np.zeros(3, np.int64), words, number=2) == [("a", "b")]


def test_punctuation_and_what_is_frequent_everywhere_is_no_name() -> None:
    labels = np.array([0] * 5 + [1] * 5)
    words = [["river", ",", "he", "2"]] * 5 + [["money", "she", "."]] * 5
    found = distinctive_words(labels, words, is_frequent=lambda word: word in ("he", "she"))
    assert found == [("river",), ("money",)]


def test_substitutes_are_the_words_they_stand_for() -> None:
    numbers = np.array([[0, 2], [1, 2]], np.int32)
    found = substitutes_of(numbers, ["shore", "company", "thing"])
    assert found == [["shore", "thing"], ["company", "thing"]]


def test_collocates_are_near_and_never_the_word_itself() -> None:
    sentences = [[*["far"] * 3, *["x"] * 8, "River", "bank", "water"], ["bank"]]
    near, alone = collocates_of(sentences, [(12, 13), (0, 1)])
    assert near == ["far", *["x"] * 8, "river", "water"]
    assert alone == []
