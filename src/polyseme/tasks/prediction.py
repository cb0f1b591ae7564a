"""A trained task at work: on labelled data that it has not learned from, or on a file of texts.

    in    one text a line; two with a tab between them for pairs; or one text, where a family reads
          documents
    out   JSON lines, one for each sentence, text or pair; or a page, where the file is named .html

Files may be of any length; memory is bounded.

`TaskTagger` is a task that tags the words of a corpus that is being prepared (`prepare --annotate
upos`). Sentences are read in the batches that a shard makes of them, by one thread: what a tag is
depends on the shard and not on the worker. The processor does it also where there is a GPU, since
there may be as many workers as it has cores.
"""

import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import Any, Self

from polyseme.devices import one_thread
from polyseme.errors import ConfigError, ExecutorError, InputError
from polyseme.progress import Progress
from polyseme.storage.files import hold_file, scratch_for, sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import task_folder
from polyseme.storage.store import is_url
from polyseme.tasks.data import read_split
from polyseme.tasks.families.family import Example, Predicted
from polyseme.tasks.families.tagging import PredictedTags, Tagged, Tagging
from polyseme.tasks.measures import ExampleScores, MeanStd
from polyseme.tasks.readers.lines import numbered_lines
from polyseme.tasks.spans import OUTSIDE
from polyseme.tasks.task import Task, best_in, trained_in
from polyseme.tasks.texts import LONGEST_DOCUMENT_LABELLED, ExampleStats
from polyseme.text.annotation import Annotate
from polyseme.text.formats.tables import NumberedLine
from polyseme.text.records import Rejected


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

    def to_json(self) -> dict[str, Any]:
        """The measure of each seed, and the tables of the first."""
        return {
            "task": str(self.folder),
            "data": str(self.data),
            "measure": self.measure,
            "scores": [each.value(self.measure) for each in self.scores],
            "tables": self.scores[0].tables(),
        }


def evaluate_task(
    folder: Path, data: Path | None, *, model: Path | None, progress: Progress
) -> EvaluatedTask:
    """Measure on a file laid out like the task's own, by default on its test data.

    `model`: where the model the task was trained with lies now, if it has moved.
    """
    folders = trained_in(task_folder(folder))
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


_PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<title>Predicted</title>
<style>body { font-family: serif; line-height: 1.7; max-width: 45em; margin: 2em auto; }</style>
"""


def label_file(
    task: Task, path: Path, out: Path, *, progress: Progress, probabilities: bool = False
) -> ExampleStats:
    """Label a file of texts; the result appears whole or not at all."""
    stats = ExampleStats()
    progress.start("Labelling", path.stat().st_size if path.is_file() else 0)
    examples = _examples_of(task, path, stats, progress)
    write(task.label(examples, probabilities=probabilities), out)
    return stats


def write(found: Iterable[Predicted], out: Path) -> None:
    """JSON lines, or HTML; refused while another process writes to the same file."""
    is_page = out.suffix.lower() == ".html"
    with (
        hold_file(out),
        scratch_for(out) as scratch,
        scratch.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        if is_page:
            stream.write(_PAGE)
        for each in found:
            line = each._repr_html_() if is_page else json.dumps(each.as_json(), ensure_ascii=False)
            stream.write(line + "\n")


def _examples_of(
    task: Task, path: Path, stats: ExampleStats, progress: Progress
) -> Iterator[Example]:
    """A text that cannot be used is counted and told."""
    texts = _lines_of(path, stats, progress)
    if task.family.reads_whole_files:
        texts = _whole(texts)
    for line in texts:
        if not line.text.strip():
            continue
        try:
            examples = task.examples_of_line(line.text)
        except InputError as error:
            unfit = Rejected(line.number, "unfit", line.text, str(error))
            stats.reject(unfit, str(path))
            continue
        stats.keep(1 if task.family.reads_whole_files else len(examples))
        yield from examples


def _lines_of(path: Path, stats: ExampleStats, progress: Progress) -> Iterator[NumberedLine]:
    """Those that can be read; the others are counted."""
    done = 0
    for line in numbered_lines(path, "utf-8"):
        if isinstance(line, Rejected):
            stats.reject(line, str(path))
            continue
        done += len(line.text.encode()) + 1
        progress.update(done)
        yield line


def _whole(lines: Iterator[NumberedLine]) -> Iterator[NumberedLine]:
    """All lines as one text; of a file that is too long, enough for it to be refused."""
    texts, num_characters = [], 0
    for line in lines:
        texts.append(line.text)
        num_characters += len(line.text) + 1
        if num_characters > LONGEST_DOCUMENT_LABELLED + 1:
            break
    yield NumberedLine(1, "\n".join(texts))


@dataclass(frozen=True)
class TaskTagger:
    """A task as an annotator: its name travels to the workers, each of which loads it once."""

    task: str
    """Its name, from wherever it is read."""
    task_hash: str
    name: str
    """What it is called, without the folders it lies in."""

    @classmethod
    def open(cls, name: str | PathLike[str]) -> Self:
        """As the process that starts a run sees it; an error if it cannot tag words."""
        folder = best_in(task_folder(name))
        is_folder = Path(name).exists() and not is_url(name)
        opened = cls(
            str(folder.resolve()) if is_folder else fspath(name),
            sha256_of(folder / MANIFEST),
            Path(name).resolve().name if is_folder else PurePosixPath(fspath(name)).name,
        )
        family = opened._held().family
        if not isinstance(family, Tagging) or family.marks_spans or family.config.has_target:
            raise ConfigError(
                f"{name} is a task that does not tag every word of a sentence. For --annotate upos "
                'it needs network.kind = "tagging", scheme = "none" and no target word.'
            )
        return opened

    @property
    def description(self) -> str:
        """The hash of its manifest, wherever it lies."""
        return f"a task with manifest {self.task_hash}"

    @property
    def recorded(self) -> dict[str, str]:
        """Its name, and the hash of its manifest."""
        return {"name": self.name, "sha256": self.task_hash}

    def load(self) -> Annotate:
        """Loads task and model, or takes those from the shard before."""
        task = self._held()

        def annotate(sentences: Sequence[Sequence[str]]) -> Iterator[Sequence[str]]:
            examples = (Tagged(tuple(words), (OUTSIDE,) * len(words)) for words in sentences)
            with one_thread():
                for found in task.label(examples):
                    assert isinstance(found, PredictedTags)
                    yield found.labels

        return annotate

    def _held(self) -> Task:
        return _held_task(self.task, self.task_hash)


@lru_cache(maxsize=1)
def _held_task(name: str, task_hash: str) -> Task:
    folder = best_in(task_folder(name))
    if sha256_of(folder / MANIFEST) != task_hash:
        raise ExecutorError(
            f"{name} is another task on {platform.node()} than where the run was started, or was "
            "changed since. Give all nodes the same one."
        )
    return Task.load(folder, device="cpu")
