"""What a record is, what happens to what is not one, and counts that add up, or it is our mistake.

A reader turns a piece of a source into `Record`, `Rejected` and `Blank` items, in order.
Every line, row or sentence of the input is exactly one item (or part of one, where lines are
joined into a paragraph).

    read      = blank + quarantined + kept         lines, rows or sentences of the input
    records   = kept - joined                      after lines were joined into paragraphs
    sentences = found + added                      after overlong ones were split
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from polyseme.errors import InternalError
from polyseme.limits import LONGEST_LINE

_RESTS = "broken-file"  # the reason that stands once for the rest of a file
WHOLE_FILES = frozenset((_RESTS, "not-text", "encrypted", "no-text-layer"))
"""Reasons that are those of a file, not of a line."""
COUNTS = (
    "read",
    "blank",
    "quarantined",
    "kept",
    "joined",
    "records",
    "records_without_words",
    "records_with_controls",
    "documents",
    "documents_continued",
    "held_out_documents",
    "sentences_found",
    "sentences_split",
    "sentences_added",
    "sentences",
    "held_out_sentences",
    "words",
    "held_out_words",
    "characters",
)


@dataclass
class ReadStats:
    """What was read for one shard or for a whole corpus."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Why things were quarantined, and how many for each reason."""
    lengths: Counter[int] = field(default_factory=Counter)
    """How many sentences have this many words."""

    def as_json(self) -> dict[str, Any]:
        """Plain values in a stable order."""
        return {
            **{name: self.counts[name] for name in COUNTS},
            "quarantine_reasons": dict(sorted(self.reasons.items())),
            "sentence_lengths": {str(n): self.lengths[n] for n in sorted(self.lengths)},
        }

    @classmethod
    def total(cls, parts: Iterable[Mapping[str, Any]]) -> "ReadStats":
        """The sum of several, each as `as_json` gave it."""
        total = cls()
        for part in parts:
            total.counts.update({name: part[name] for name in COUNTS})
            total.reasons.update(part["quarantine_reasons"])
            total.lengths.update({int(n): m for n, m in part["sentence_lengths"].items()})
        return total

    def check(self) -> None:
        """Fail loudly if anything was lost or counted twice."""
        c = self.counts
        by_length = sum(n * m for n, m in self.lengths.items())
        sums = [
            ("read", c["read"], c["blank"] + c["quarantined"] + c["kept"]),
            ("records", c["records"], c["kept"] - c["joined"]),
            ("sentences", c["sentences"], c["sentences_found"] + c["sentences_added"]),
            ("quarantined", c["quarantined"], self.reasons.total()),
            ("sentences of all lengths", c["sentences"], self.lengths.total()),
            ("words", c["words"], by_length),
        ]
        wrong = [f"{name}: {one:,} and {other:,}" for name, one, other in sums if one != other]
        if wrong:  # not an `assert`, which python -O would take away
            raise InternalError(
                f"Two independent counts disagree: {'; '.join(wrong)}. Some input was lost or "
                "counted twice, so the corpus is not marked as finished. Please report this."
            )


def list_reasons(reasons: Mapping[str, int]) -> list[tuple[str, str]]:
    """Why how much was quarantined, for a table; and of what nobody knows how much it is."""
    rows = [(reason, f"{number:,}") for reason, number in reasons.items()]
    if files := reasons.get(_RESTS):
        plural = "s that break" if files > 1 else " that breaks"
        rows.append((f"and what follows in {files:,} file{plural} off", "unknown"))
    return rows


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
