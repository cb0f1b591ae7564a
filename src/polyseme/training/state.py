"""Where a run stands, apart from its tensors: plain numbers, saved as JSON; and how it ended."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class RunState:
    """Everything a run must know to go on as if it had never stopped."""

    step: int = 0
    """Steps done, those skipped included."""
    position: dict[str, int] = field(default_factory=dict)
    """Where the stream of batches stands."""
    words: int = 0
    seconds: float = 0.0
    """Time spent, earlier sessions included."""
    skipped: int = 0
    """Steps the guard has skipped."""
    losses: list[float] = field(default_factory=list)
    """The guard's window."""
    consecutive_skips: int = 0
    """Steps the guard has just skipped, one after the other."""
    measures: dict[str, float] = field(default_factory=dict)
    """Held-out measures, as last taken."""
    measured_at: int = 0
    best: float | None = None
    """The lowest value of the first measure."""
    best_step: int = 0
    since_best: int = 0
    """Measurements since then."""

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "RunState":
        """The reverse of `as_json`."""
        return cls(**values)

    def as_json(self) -> dict[str, Any]:
        """Numbers survive exactly: JSON writes a float with all the digits it needs."""
        return asdict(self)

    def record_measures(self, measures: dict[str, float]) -> bool:
        """Note new measures; True if the first of them is the best so far."""
        self.measures = measures
        self.measured_at = self.step
        watched = next(iter(measures.values()), math.nan)
        if not (self.best is None or watched < self.best) or math.isnan(watched):
            self.since_best += 1
            return False
        self.best, self.best_step, self.since_best = watched, self.step, 0
        return True


@dataclass(frozen=True)
class Outcome:
    """How a finished run went, all its sessions together."""

    steps: int
    seconds: float
    words: int
    measures: dict[str, float]
    """Held-out measures, as last taken."""
    stopped_early: bool
    """Whether patience ran out before the steps did."""
    best_step: int
    """The step with the best first measure; 0 if nothing was measured."""
    skipped: int
    """Steps skipped because of their loss or gradient."""
    refused: int
    """Checkpoints found damaged in this session."""
