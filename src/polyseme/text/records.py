"""The common currency of all readers: what a record is, and what happens to what is not one.

A reader turns a piece of a source into `Record`, `Rejected` and `Blank` items, in order.
Every line, row or sentence of the input is exactly one item (or part of one, where lines are
joined into a paragraph), which is what lets the counts add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from polyseme.limits import LONGEST_LINE

WordAttributes: TypeAlias = tuple[tuple[str | None, ...], ...]
"""For each attribute, a value for each word; None where there is none."""
MAX_PARTS = 1 << 18
"""Lines or pieces of one record: each takes memory beside its letters."""
LONGEST_VALUE = 1 << 16
"""Characters of a document's name or of a value of metadata: every sentence has them once more."""
QUOTE = 1000
"""How much of a rejected item is kept for reading, in bytes or characters."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stretch of running text of one document."""

    document: str
    """Name of the document. Two may share one, if the user named them."""
    text: str
    place: int
    """Byte offset or row number in the source, for messages."""
    meta: tuple[str | None, ...] = ()
    """Values of the user's columns, in the order of the `meta` setting."""
    units: int = 1
    """How many lines of input were joined into it."""
    opened: int = 0
    """Where in the source its document begins."""
    words: tuple[str, ...] | None = None
    """The words of one sentence, where the source has them marked."""
    starts: tuple[int, ...] | None = None
    """Where each of `words` begins in `text`."""
    attributes: WordAttributes = ()
    """What the source says of each of `words`, in the order of the `word_attributes` setting."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Input that could not be used. It is written to the quarantine."""

    place: int
    reason: str
    quote: str
    detail: str = ""
    units: int = 1


@dataclass(frozen=True, slots=True)
class Blank:
    """A line or row without text. Only counted."""

    units: int = 1


BLANK = Blank()
"""The one most readers need."""

ReadItem: TypeAlias = Record | Rejected | Blank
ReadItems: TypeAlias = Iterator[ReadItem]


class RecordSize:
    """How large a record has become that is gathered from several lines, words or elements.

    However many parts it has, it is no longer than one line may be. Every reader that gathers asks
    here before it keeps a part, so that none can be made to hold more.
    """

    def __init__(self, max_parts: int = MAX_PARTS) -> None:
        self._max_parts = max_parts
        self.characters = self.parts = 0

    def add(self, characters: int) -> bool:
        """Count one more part, and say whether the record is still small enough to be kept."""
        self.characters += characters
        self.parts += 1
        return not self.is_exceeded

    @property
    def is_exceeded(self) -> bool:
        """Whether it is to be rejected."""
        return self.characters > LONGEST_LINE or self.parts > self._max_parts

    @property
    def excess(self) -> str:
        """What there is too much of."""
        if self.parts > self._max_parts:
            return f"over {self._max_parts:,} parts"
        return f"over {LONGEST_LINE:,} characters"

    def clear(self) -> None:
        """Another record begins."""
        self.characters = self.parts = 0


def check_record(item: ReadItem) -> ReadItem:
    """The item; rejected if a value of it is too long to stand in every sentence."""
    if isinstance(item, Record):
        for value in (item.document, *item.meta):
            if value is not None and len(value) > LONGEST_VALUE:
                detail = f"a name or value of {len(value):,} characters, over {LONGEST_VALUE:,}"
                units = item.units
                return Rejected(item.place, "metadata-too-long", quote(value), detail, units)
    return item


def quote(raw: bytes | str) -> str:
    """The beginning of something rejected, in a form that can be written anywhere."""
    if isinstance(raw, bytes):
        return raw[:QUOTE].decode("utf-8", errors="backslashreplace")
    return raw[:QUOTE].encode("utf-8", errors="backslashreplace").decode("utf-8")
