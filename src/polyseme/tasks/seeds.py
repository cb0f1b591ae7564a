"""A task trained several times, differing in nothing but the seed: a folder for each."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from polyseme.storage.folders import SEED_PREFIX


class MeanStd(NamedTuple):
    """A measure over seeds."""

    mean: float
    std: float | None
    """Standard deviation of the sample; None where there is a single seed."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanStd":
        """Of one value for each seed."""
        std = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), std)

    def __str__(self) -> str:
        told = "" if self.std is None else f" ± {100 * self.std:.2f}"
        return f"{100 * self.mean:.2f}{told}"


def seed_folder(folder: Path, seed: int) -> Path:
    """Where the task trained with this seed lies."""
    return folder / f"{SEED_PREFIX}{seed}"
