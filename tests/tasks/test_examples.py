"""Texts become words once, by whatever will read them."""

from polyseme.tasks.examples import Classified, Paired, Tagged, with_words


def split(text: str) -> tuple[str, ...]:
    return tuple(text.upper().split())


def test_texts_are_split_and_words_left_as_they_are() -> None:
    assert with_words(Classified("a b", "x"), split) == Classified(("A", "B"), "x")
    assert with_words(Classified(("a", "b"), "x", marked=1), split) == Classified(
        ("a", "b"), "x", marked=1
    )
    assert with_words(Paired("a b", ("c",), "x"), split) == Paired(("A", "B"), ("c",), "x")
    tagged = Tagged(("a",), ("X",), marked=0)
    assert with_words(tagged, split) is tagged
