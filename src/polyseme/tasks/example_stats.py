"""Where every row of a file of examples went: counts that add up, and the first faults in words.

read = kept + rejected         sentences, rows or lines; blank ones are not counted
examples                       may be more than `kept`: a sentence has many predicates
"""

from collections import Counter
from dataclasses import dataclass, field

from polyseme.text.records import Rejected

_FAULTS_KEPT = 20


@dataclass
class ExampleStats:
    """Counts of one file, or of several read one after the other."""

    read: int = 0
    kept: int = 0
    examples: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Why units were rejected, and how many for each reason."""
    notes: Counter[str] = field(default_factory=Counter)
    """What is remarkable in units that were kept, and how many of each."""
    faults: list[str] = field(default_factory=list)
    """The first of them in words, each with its file and line."""

    @property
    def rejected(self) -> int:
        """How many units gave no example."""
        return self.reasons.total()

    def keep(self, examples: int) -> None:
        """Count one unit that gave examples."""
        self.read += 1
        self.kept += 1
        self.examples += examples

    def reject(self, rejected: Rejected, name: str, unit: str = "line") -> None:
        """Count one unit that gave none; `name` is that of the file, `unit` what is counted."""
        self.read += rejected.units
        self.reasons[rejected.reason] += rejected.units
        if len(self.faults) < _FAULTS_KEPT:
            detail = f" ({rejected.detail})" if rejected.detail else ""
            quoted = f": {rejected.quote[:80]!r}" if rejected.quote else ""
            place = f"{name}, {unit} {rejected.place}"
            self.faults.append(f"{place}: {rejected.reason}{detail}{quoted}")

    def withdraw(self, reason: str, fault: str) -> None:
        """Reject a unit of one example that was kept before."""
        self.kept -= 1
        self.examples -= 1
        self.reasons[reason] += 1
        if len(self.faults) < _FAULTS_KEPT:
            self.faults.append(f"{fault}: {reason}")

    def summary(self) -> str:
        """One line for the user; says nothing of reasons if nothing was rejected."""
        noted = [f"{count:,} with {note}" for note, count in self.notes.most_common()]
        total = ", ".join([f"{self.examples:,} examples", *noted])
        if not self.reasons:
            return total
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        return f"{total}; {self.rejected:,} of {self.read:,} rows rejected: {reasons}"
