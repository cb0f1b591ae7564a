"""A file of texts in, a file of labels out: of any length, in bounded memory.

in    one text a line; two with a tab between them for pairs
out   JSON lines, one for each sentence, text or pair
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from polyseme.errors import InputError
from polyseme.progress import Progress
from polyseme.storage.files import scratch_for
from polyseme.storage.locks import hold_file
from polyseme.tasks.example_stats import ExampleStats
from polyseme.tasks.families.family import Example, Predicted
from polyseme.tasks.readers.lines import numbered_lines
from polyseme.tasks.task import Task
from polyseme.text.records import Rejected


def label_file(task: Task, path: Path, out: Path, progress: Progress) -> ExampleStats:
    """Label a file of texts; the result appears whole or not at all."""
    stats = ExampleStats()
    progress.start("Labelling", path.stat().st_size if path.is_file() else 0)
    write(task.label(_examples_of(task, path, stats, progress)), out)
    return stats


def write(found: Iterable[Predicted], out: Path) -> None:
    """JSON lines; refused while another process writes to the same file."""
    with (
        hold_file(out),
        scratch_for(out) as scratch,
        scratch.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        for each in found:
            stream.write(json.dumps(each.as_json(), ensure_ascii=False) + "\n")


def _examples_of(
    task: Task, path: Path, stats: ExampleStats, progress: Progress
) -> Iterator[Example]:
    """A line that cannot be used is counted and told."""
    done = 0
    for line in numbered_lines(path, "utf-8"):
        if isinstance(line, Rejected):
            stats.reject(line, str(path))
            continue
        done += len(line.text.encode()) + 1
        progress.update(done)
        if not line.text.strip():
            continue
        try:
            examples = task.examples_of_line(line.text)
        except InputError as error:
            unfit = Rejected(line.number, "unfit", line.text, str(error))
            stats.reject(unfit, str(path))
            continue
        stats.keep(len(examples))
        yield from examples
