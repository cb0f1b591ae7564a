"""Tables of n-grams in, the probability of each held-out one out: interpolated modified Kneser-Ney.

    grams    w0 .. w(N-1), number   every distinct n-gram of the training sentences, how often
    held     w0 .. w(N-1), times    every distinct n-gram of the held-out sentences, how often
    scored   times, probability     what comes out: one row for each row of `held`

`w0` is the word that is predicted, `w1` the one before it, and so on. Chen and Goodman, "An
empirical study of smoothing techniques for language modeling" (1998), section 3; at each order

    p(w0 | context) = (c - D(c)) / total + (D1 n1 + D2 n2 + D3 n3) / total * p(w0 | one word less)

with c the number of this n-gram, total that of all with its context, and n1, n2, n3 how many
different words follow the context once, twice, more often. The highest order counts occurrences,
each lower one the different words found to the left. Under the lowest lies a uniform distribution
over all classes, so nothing is impossible. A context never seen leaves everything to the order
below.
"""

from collections.abc import Sequence
from typing import NamedTuple

import duckdb


class Discounts(NamedTuple):
    """What is taken off a count of one, of two, and of three or more."""

    one: float
    two: float
    more: float


FALLBACK = Discounts(0.5, 1.0, 1.5)
"""For an order whose counts give no estimate; the numbers are KenLM's (`--discount_fallback`).

That is usual for single words: a vocabulary cut by frequency has none that was seen just once."""

_BEGIN = "CREATE TABLE state AS SELECT *, 0::DOUBLE AS value, 1::DOUBLE AS weight FROM held"
_COUNTS_OF_COUNTS = """
    SELECT count(*) FILTER (number = 1), count(*) FILTER (number = 2),
           count(*) FILTER (number = 3), count(*) FILTER (number = 4) FROM grams
"""
# Only what some held-out n-gram asks for is fetched, so that the joins in _DESCEND are small.
_FIND = "CREATE TABLE found AS SELECT * FROM grams SEMI JOIN state USING ({words})"
# Whole numbers, discounted later: a sum of fractions would depend on the number of threads.
_SUM_UP = """
    CREATE TABLE contexts AS SELECT {context} sum(number)::DOUBLE AS total,
        count(*) FILTER (number = 1) AS n1, count(*) FILTER (number = 2) AS n2,
        count(*) FILTER (number > 2) AS n3
    FROM grams {needed} GROUP BY ALL
"""
# The recursion unrolled from above: `value` is what the orders so far have given, `weight` the
# share they leave to those below.
_DESCEND = """
    CREATE TABLE below AS SELECT {kept} times,
        value + weight * coalesce((number - CASE number WHEN 1 THEN $one WHEN 2 THEN $two
                                   ELSE $more END) / total, 0) AS value,
        weight * coalesce(($one * n1 + $two * n2 + $more * n3) / total, 1) AS weight
    FROM state LEFT JOIN found USING ({words}) LEFT JOIN contexts {matching}
"""
_SHORTEN = "CREATE TABLE shorter AS SELECT {words}, count(*) AS number FROM grams GROUP BY ALL"
_FINISH = "CREATE TABLE scored AS SELECT times, value + weight / $classes AS probability FROM state"


def smooth(
    connection: duckdb.DuckDBPyConnection, *, order: int, num_classes: int
) -> tuple[Discounts, ...]:
    """Make `scored` of `grams` and `held`, which are used up; the discounts, lowest order first."""
    connection.execute(_BEGIN)
    connection.execute("DROP TABLE held")
    discounts = []
    for size in range(order, 0, -1):
        row = connection.execute(_COUNTS_OF_COUNTS).fetchone()
        assert row is not None  # a count always has one row
        discounts.append(estimate_discounts(row))
        _descend(connection, size, discounts[-1])
        if size > 1:
            connection.execute(_SHORTEN.format(words=", ".join(_words(size - 1))))
            connection.execute("DROP TABLE grams; ALTER TABLE shorter RENAME TO grams")
    connection.execute(_FINISH, {"classes": num_classes})
    connection.execute("DROP TABLE state; DROP TABLE grams")
    return tuple(reversed(discounts))


def estimate_discounts(counts_of_counts: Sequence[int]) -> Discounts:
    """The three discounts, from how many n-grams were counted once, twice, 3 and 4 times.

    An estimate must leave something to the order below and take no more than is there; where it
    does not, or cannot be made, all three are FALLBACK's.
    """
    n1, n2, n3, n4 = counts_of_counts
    if 0 in (n1, n2, n3):
        return FALLBACK
    y = n1 / (n1 + 2 * n2)
    found = Discounts(1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return found if all(amount > 0 for amount in found) else FALLBACK


def _descend(connection: duckdb.DuckDBPyConnection, size: int, discounts: Discounts) -> None:
    """Add to `state` what the n-grams of one size give, and drop the word no smaller one has."""
    words, context = ", ".join(_words(size)), ", ".join(_words(size)[1:])
    connection.execute(_FIND.format(words=words))
    connection.execute(
        _SUM_UP.format(
            context=f"{context}," if context else "",
            needed=f"SEMI JOIN state USING ({context})" if context else "",
        )
    )
    connection.execute(
        _DESCEND.format(
            kept="".join(f"{name}, " for name in _words(size - 1)),
            words=words,
            matching=f"USING ({context})" if context else "ON true",
        ),
        discounts._asdict(),
    )
    connection.execute("DROP TABLE state; DROP TABLE found; DROP TABLE contexts")
    connection.execute("ALTER TABLE below RENAME TO state")


def _words(size: int) -> list[str]:
    """The columns that hold an n-gram of this size."""
    return [f"w{distance}" for distance in range(size)]
