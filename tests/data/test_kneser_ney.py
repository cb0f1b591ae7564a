"""Discounts by hand, and chances that sum to one. The probabilities themselves: test_ngrams.py."""

import pytest

from polyseme.data.ngrams import Discounts, estimate_discounts


def test_discounts_follow_from_counts_of_counts() -> None:
    # By hand: Y = 4 / (4 + 2 * 2) = 1/2.
    assert estimate_discounts((4, 2, 1, 1)) == Discounts(0.5, 1.25, 1.0)


@pytest.mark.parametrize(
    "counts_of_counts",
    [(0, 2, 1, 1), (4, 0, 1, 1), (4, 2, 0, 1), (0, 0, 0, 0), (9, 1, 9, 1), (9, 5, 1, 9)],
    ids=["no ones", "no twos", "no threes", "nothing", "second below zero", "third below zero"],
)
def test_discounts_that_cannot_be_estimated_are_the_stated_ones(
    counts_of_counts: tuple[int, int, int, int],
) -> None:
    assert estimate_discounts(counts_of_counts) == (0.5, 1.0, 1.5)
