"""Discounts by hand, and chances that sum to one. The probabilities themselves: test_ngrams.py."""

import itertools
import random
from collections.abc import Mapping

import duckdb
import pyarrow as pa
import pytest

from polyseme.data.ngrams import Discounts, estimate_discounts, smooth


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_chances_after_any_context_sum_to_one(order: int) -> None:
    # Ids 0 to 3 are predicted, 4 is the start, 5 a word that is in no training sentence.
    draw = random.Random(order)
    contexts = list(itertools.product(range(6), repeat=order - 1))
    seen = [context for context in contexts if 5 not in context]
    grams = sorted({(draw.randrange(4), *draw.choice(seen)) for _ in range(150)})
    asked = [(word, *context) for context in contexts for word in range(4)]
    with duckdb.connect(":memory:") as connection:
        fill(connection, "grams", "number", {gram: draw.choice("1111223349") for gram in grams})
        # `times` comes out again beside the probability, so here it tells the contexts apart.
        fill(connection, "held", "times", {gram: place // 4 for place, gram in enumerate(asked)})
        smooth(connection, order=order, num_classes=4)
        sums = connection.execute(
            "SELECT sum(probability), min(probability) FROM scored GROUP BY times"
        ).fetchall()
    assert len(sums) == len(contexts)
    assert all(total == pytest.approx(1, abs=1e-12) and least > 0 for total, least in sums)


def fill(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    last: str,
    rows: Mapping[tuple[int, ...], int | str],
) -> None:
    """A table of n-grams, each with one more number."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    names = [f"w{distance}" for distance in range(len(columns))]
    numbers = [int(number) for number in rows.values()]
    connection.register("given", pa.table([*columns, numbers], names=[*names, last]))
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM given")
    connection.unregister("given")


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
