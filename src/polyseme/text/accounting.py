"""Where every line went: counts that add up, or it is our mistake.

read      = blank + quarantined + kept         lines, rows or sentences of the input
records   = kept - joined                      after lines were joined into paragraphs
sentences = found + added                      after overlong ones were cut
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_COUNTS = (
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
    "sentences_cut",
    "sentences_added",
    "sentences",
    "held_out_sentences",
    "words",
    "held_out_words",
    "characters",
)


@dataclass
class Accounting:
    """Counts of one shard or of a whole corpus."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Why things were quarantined, and how many for each reason."""
    lengths: Counter[int] = field(default_factory=Counter)
    """How many sentences have this many words."""

    def as_json(self) -> dict[str, Any]:
        """Plain values in a stable order."""
        return {
            **{name: self.counts[name] for name in _COUNTS},
            "quarantine_reasons": dict(sorted(self.reasons.items())),
            "sentence_lengths": {str(n): self.lengths[n] for n in sorted(self.lengths)},
        }

    @classmethod
    def total(cls, parts: Iterable[Mapping[str, Any]]) -> "Accounting":
        """The sum of several, each as `as_json` gave it."""
        total = cls()
        for part in parts:
            total.counts.update({name: part[name] for name in _COUNTS})
            total.reasons.update(part["quarantine_reasons"])
            total.lengths.update({int(n): m for n, m in part["sentence_lengths"].items()})
        return total

    def check(self) -> None:
        """Fail loudly if anything was lost or counted twice."""
        c = self.counts
        assert c["read"] == c["blank"] + c["quarantined"] + c["kept"], c
        assert c["records"] == c["kept"] - c["joined"], c
        assert c["sentences"] == c["sentences_found"] + c["sentences_added"], c
        assert c["quarantined"] == self.reasons.total(), (c, self.reasons)
        assert c["sentences"] == self.lengths.total(), c
        assert c["words"] == sum(n * m for n, m in self.lengths.items()), c
