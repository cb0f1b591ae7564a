"""Windows of long texts."""

from itertools import pairwise

import pytest

from polyseme.tasks.texts import choose_windows

WORDS = [f"w{number}" for number in range(100)]


@pytest.mark.parametrize("length", [1, 9, 10, 11, 16, 17, 100])
def test_windows_cover_every_word_and_every_short_span(length: int) -> None:
    found = choose_windows(WORDS[:length], [], size=10, overlap=4, most=99)
    assert found[0][0] == 0
    assert found[-1][1] == length
    assert all(0 < end - begin <= 10 for begin, end in found)
    assert all(after[0] == before[1] - 4 for before, after in pairwise(found))
    for begin in range(length - 3):  # what is no longer than the overlap is whole in one of them
        assert any(first <= begin and begin + 4 <= end for first, end in found)


def test_of_too_many_windows_those_are_read_that_share_rare_words_with_the_question() -> None:
    words = [*WORDS[:50], "Common", *WORDS[50:], "common", "rare"]
    options = {"size": 10, "overlap": 0}
    found = choose_windows(words, ["RARE", "common"], most=2, **options)
    assert found == [(50, 60), (100, 103)]
    assert choose_windows(words, ["rare"], most=1, **options) == [(100, 103)]
    assert choose_windows(words, ["unheard"], most=2, **options) == [(0, 10), (10, 20)]
