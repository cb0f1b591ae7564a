"""Where every line went: counts that add up, or it is our mistake.

read      = blank + quarantined + kept         lines, rows or sentences of the input
records   = kept - joined                      after lines were joined into paragraphs
sentences = found + added                      after overlong ones were split
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyseme.errors import InternalError

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
