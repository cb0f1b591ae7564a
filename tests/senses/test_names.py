"""Names of groups: what is their own, not what is frequent."""

import numpy as np

from polyseme.senses.names import distinctive_words, name_by_collocates, name_by_substitutes


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
    assert distinctive_words(np.zeros(3, np.int64), [["a", "b"], ["a"], ["c", "a"]], 2) == [
        ("a", "b")
    ]


def test_substitutes_name_by_the_words_they_stand_for() -> None:
    labels = np.array([0] * 4 + [1] * 4)
    numbers = np.array([[0, 2]] * 4 + [[1, 2]] * 4, np.int32)
    assert name_by_substitutes(labels, numbers, ["shore", "company", "thing"]) == [
        ("shore",),
        ("company",),
    ]


def test_collocates_are_near_and_never_the_word_or_punctuation() -> None:
    far = ["far"] * 3 + ["x"] * 20
    sentences = [[*far, "River", "bank", ",", "water"]] * 4 + [["money", "bank", "."]] * 4
    spans = [(24, 25)] * 4 + [(1, 2)] * 4
    first, second = name_by_collocates(np.array([0] * 4 + [1] * 4), sentences, spans)
    assert set(first) == {"river", "water", "x"}
    assert second == ("money",)
