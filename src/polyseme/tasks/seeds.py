"""A task trained several times, with chance being all that differs: a folder for each seed."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from polyseme.errors import ModelError
from polyseme.folders import MANIFEST, SEED_PREFIX, check_holds, read_manifest
from polyseme.tasks.task import KIND, WORDS


class Spread(NamedTuple):
    """A measure over seeds."""

    mean: float
    deviation: float | None
    """Standard deviation of the sample; None where there is a single seed."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of one value for each seed."""
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), deviation)

    def __str__(self) -> str:
        told = "" if self.deviation is None else f" ± {100 * self.deviation:.2f}"
        return f"{100 * self.mean:.2f}{told}"


def seed_folder(folder: Path, seed: int) -> Path:
    """Where the task trained with this seed lies."""
    return folder / f"{SEED_PREFIX}{seed}"


def is_task(folder: Path) -> bool:
    """Whether this is the folder of a trained task, not of a model."""
    return (folder / WORDS).is_file() or any(folder.glob(f"{SEED_PREFIX}*/{WORDS}"))


def trained_in(folder: Path) -> list[Path]:
    """The trained tasks in a folder, one for each seed; or the folder itself."""
    check_holds(folder, KIND.name, KIND.made_by, ModelError)
    if (folder / MANIFEST).is_file():
        return [folder]
    found = [path for path in folder.glob(f"{SEED_PREFIX}*") if (path / MANIFEST).is_file()]
    return sorted(found, key=lambda path: (len(path.name), path.name))


def best_in(folder: Path) -> Path:
    """The trained task that is best on the development data; of equals, the first."""
    found = {path: read_manifest(path, KIND)["facts"] for path in trained_in(folder)}
    dev = {path: facts.get("dev", 0.0) for path, facts in found.items()}
    return max(dev, key=lambda path: dev[path])
