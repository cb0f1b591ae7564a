"""Lines in, rows of fields out, for CSV and TSV. A quoted field may hold line ends.

A quote that is never closed would take the rest of the file into one field. Only the line with the
quote is lost: reading goes on with the next.
"""

import csv
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from polyseme.limits import LONGEST_LINE
from polyseme.text.records import RecordSize, Rejected, quote


class NumberedLine(NamedTuple):
    """A line of a file and its number, from 1."""

    number: int
    text: str


class DelimitedRow(NamedTuple):
    """The fields of a row, and the number of the line it ends on."""

    number: int
    fields: list[str]


def read_rows(
    lines: Iterable[NumberedLine | Rejected], **dialect: Any
) -> Iterator[DelimitedRow | Rejected]:
    """Every row, in order; what breaks the rules of quoting is rejected line by line."""
    csv.field_size_limit(LONGEST_LINE)
    feed = _Feed(iter(lines))
    reader = csv.reader(feed, strict=True, **dialect)
    row: DelimitedRow | Rejected
    while True:
        feed.begin_row()
        try:
            fields = next(reader, None)
        except csv.Error as error:
            row = feed.reject_first_line(str(error))
            reader = csv.reader(feed, strict=True, **dialect)
        else:
            if fields is None:
                yield from feed.rejected
                return
            row = DelimitedRow(feed.taken[-1].number, fields)
        # Lines the reader never saw were rejected before it; they come out in place.
        yield from feed.rejected
        feed.rejected.clear()
        yield row


class _Feed:
    """Lines as the CSV reader wants them, with those of the present row kept."""

    def __init__(self, lines: Iterator[NumberedLine | Rejected]) -> None:
        self._lines = lines
        self._waiting: deque[NumberedLine] = deque()  # those to be read once more
        self._size = RecordSize()
        self.taken: list[NumberedLine] = []
        self.rejected: list[Rejected] = []

    def begin_row(self) -> None:
        """What is read from now on is another row."""
        self.taken.clear()
        self._size.clear()

    def reject_first_line(self, error: str) -> Rejected:
        """Give up the line a row began with; those after it may be rows."""
        first, *rest = self.taken
        # No line is read often: one that opens a quote also ends a field opened before it.
        self._waiting.extendleft(reversed(rest))
        where = f"line {first.number}"
        if rest:
            where += f", read on to line {rest[-1].number}"
        return Rejected(first.number, "broken-row", quote(first.text), f"{where}: {error}")

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else self._next_line()
        self.taken.append(line)
        if not self._size.add(len(line.text) + 1) and len(self.taken) > 1:
            raise csv.Error(f"a quote that is not closed in time: {self._size.excess}")
        return line.text + "\n"

    def _next_line(self) -> NumberedLine:
        for line in self._lines:
            if not isinstance(line, Rejected):
                return line
            self.rejected.append(line)
        raise StopIteration
