"""Label texts with a trained task: tag words, classify texts or pairs of texts.

Text is split into sentences and words in the same way as the model's training corpus. A file has
one text per line, or two separated by a tab for a task on pairs. If a task is about one word
(semantic roles), mark the word: She *gave* him a book.

Examples:

  polyseme predict "Ada Lovelace lived in London." --task tasks/ner

  polyseme predict "A man sleeps." "Nobody is awake." --task tasks/nli

  cat letters.txt | polyseme predict - --task tasks/ner --json

  polyseme predict --task tasks/ner --input-file letters.txt --out letters.jsonl --probabilities
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Group, RenderableType

from polyseme.config import Folder, OptionalFolder, Settings
from polyseme.errors import ConfigError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import disk_faults_explained
from polyseme.text.streams import STANDARD_INPUT, texts_of

if TYPE_CHECKING:
    from polyseme.tasks.families.family import Predicted
    from polyseme.tasks.task import Task
    from polyseme.tasks.texts import ExampleStats


class PredictConfig(Settings):
    """Which task, on what."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...] = ()
    """Texts, each quoted; two for a task on pairs. - reads standard input, one example per line, as
    in a file."""
    task: Folder
    """The folder of the trained task; of several seeds, the best on the development data."""
    input_file: Path | None = None
    """A file of texts instead, one per line."""
    out: Path | None = None
    """JSON lines to write to, one for each sentence; required with --input-file."""
    probabilities: bool = False
    """Also give probabilities: of each word's label, or of all labels of a text. Not available for
    coreference and sequence to sequence; choice and question answering always give them."""
    model: OptionalFolder = None
    """Where the model that the task was trained with is now, if it is not found automatically."""


@dataclass(frozen=True)
class PredictResult:
    """What was found; of a file only how much, the rest being on disk."""

    found: "list[Predicted]"
    stats: "ExampleStats | None" = None
    out: Path | None = None

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each text, sentence or pair."""
        if self.stats is not None:  # they are in the file
            return iter([{"out": str(self.out)}])
        return (each.as_json() for each in self.found)


def run(config: PredictConfig, progress: Progress = SILENT) -> PredictResult:
    """Label all texts."""
    if bool(config.inputs) == bool(config.input_file):
        raise ConfigError("Give texts, or --input-file with texts: one of the two.")
    if config.input_file is not None and config.out is None:
        raise ConfigError("With --input-file, name where the labels go: --out labels.jsonl")
    from polyseme.tasks.prediction import label_file, write
    from polyseme.tasks.task import Task

    task = Task.load(config.task, model=config.model)
    if config.input_file is None:
        found = _predict(task, config)
        if config.out is not None:
            with disk_faults_explained(config.out.parent):
                write(found, config.out)
        return PredictResult(found, None, config.out)
    assert config.out is not None
    with disk_faults_explained(config.out.parent):
        stats = label_file(
            task,
            config.input_file,
            config.out,
            progress=progress,
            probabilities=config.probabilities,
        )
    return PredictResult([], stats, config.out)


def _predict(task: "Task", config: PredictConfig) -> "list[Predicted]":
    """Texts as they were given; a line of standard input is an example."""
    if STANDARD_INPUT not in config.inputs:
        return task.predict(config.inputs, probabilities=config.probabilities)
    lines = texts_of(config.inputs)
    examples = (example for line in lines for example in task.examples_of_line(line))
    return list(task.label(examples, probabilities=config.probabilities))


def show(result: PredictResult) -> RenderableType:
    """Sentences with their labels in colour."""
    shown: list[RenderableType] = [*result.found]
    if result.stats is not None:
        shown += [result.stats.summary(), *result.stats.faults]
    if result.out is not None:
        shown.append(f"Labels: {result.out}")
    return Group(*shown)
