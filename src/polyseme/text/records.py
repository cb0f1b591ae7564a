"""The common currency of all readers: what a record is, and what happens to what is not one.

A reader turns a piece of a source into `Record`, `Rejected` and `Blank` items, in order.
Every line, row or sentence of the input is exactly one item (or part of one, where lines are
joined into a paragraph), which is what lets the counts add up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

WordAttributes: TypeAlias = tuple[tuple[str | None, ...], ...]
"""For each attribute, a value for each word; None where there is none."""
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
    """Something that could not be used. It goes to the quarantine, never into thin air."""

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


def quote(raw: bytes | str) -> str:
    """The beginning of something rejected, in a form that can be written anywhere."""
    if isinstance(raw, bytes):
        return raw[:QUOTE].decode("utf-8", errors="backslashreplace")
    return raw[:QUOTE].encode("utf-8", errors="backslashreplace").decode("utf-8")
