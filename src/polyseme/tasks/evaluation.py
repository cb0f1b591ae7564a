"""Trained tasks on labelled data they have not learned from."""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from polyseme.errors import ConfigError
from polyseme.progress import Progress
from polyseme.tasks.data import read_split
from polyseme.tasks.example_stats import ExampleStats
from polyseme.tasks.folder import trained_in
from polyseme.tasks.measures import ExampleScores
from polyseme.tasks.seeds import MeanStd
from polyseme.tasks.task import Task


@dataclass(frozen=True)
class EvaluatedTask:
    """How right a task is, once for each seed it was trained with."""

    folder: Path
    data: Path
    measure: str
    scores: list[ExampleScores]
    stats: ExampleStats

    @property
    def score(self) -> MeanStd:
        """The measure over seeds."""
        return MeanStd.of([each.value(self.measure) for each in self.scores])


def evaluate_task(
    folder: Path, data: Path | None, *, model: Path | None, progress: Progress
) -> EvaluatedTask:
    """Measure on a file laid out like the task's own, by default on its test data.

    `model`: where the model the task was trained with lies now, if it has moved.
    """
    folders = trained_in(folder)
    tasks = (Task.load(each, model=model) for each in folders)
    first = next(tasks)
    config = first.config
    file = data or config.data.test
    if file is None:
        raise ConfigError(
            f"{folder} names no test data: name a file of examples, or data.test in the task."
        )
    examples, stats = read_split(
        file, config.data.reader, config.network, text_reader=config.text_reader()
    )
    progress.start("Evaluating", len(folders))
    scores = []
    for number, task in enumerate(chain([first], tasks), start=1):
        scores.append(task.evaluate(task.data(examples, use_cache=True)))
        progress.update(number)
    return EvaluatedTask(folder, file, config.measured_by, scores, stats)
