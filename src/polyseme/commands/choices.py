"""Build a multiple-choice dataset from a corpus: which of four sentences comes next?

Writes train.jsonl, dev.jsonl and test.jsonl for a task of kind `choice`. The wrong choices are next
sentences from other places. No document is in more than one of the files.

Examples:

  polyseme choices corpus/en --out choices/en

  polyseme choices corpus/zh --examples 10000 --choices 8 --seed 7 --out choices/zh
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType

from polyseme.config import Folder, Settings
from polyseme.display import on_one_line
from polyseme.progress import SILENT, Progress


class ChoiceSetConfig(Settings):
    """Of which corpus, how many, and where to."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder, of documents with several sentences each."""
    out: Path
    """Folder to write to."""
    examples: int = Field(default=2_000, ge=8, le=1_000_000)
    """Training examples; the other two files have an eighth as many each. All are kept in memory
    while sentences are sampled."""
    choices: int = Field(default=4, ge=2, le=256)
    """Sentences to choose from; one of them is right."""
    seed: int = Field(default=1, ge=0)
    """Random seed: which sentences are sampled, and their order."""


@dataclass(frozen=True)
class ChoiceSet:
    """Where it lies, and how many examples each file has."""

    folder: Path
    counts: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"folder": str(self.folder), "examples": self.counts}


def run(config: ChoiceSetConfig, progress: Progress = SILENT) -> ChoiceSet:
    """Write the files."""
    from polyseme.storage.files import disk_faults_explained, make_output
    from polyseme.tasks.next_sentence import write_choices

    with disk_faults_explained(config.out):
        make_output(config.out)
        counts = write_choices(
            config.corpus,
            config.out,
            number=config.examples,
            choices=config.choices,
            seed=config.seed,
            progress=progress,
        )
    return ChoiceSet(config.out, counts)


def show(result: ChoiceSet) -> RenderableType:
    """A line a file, and what it is for."""
    lines = [
        on_one_line(f"{result.folder / name}.jsonl: {number:,} examples")
        for name, number in result.counts.items()
    ]
    return Group(*lines, on_one_line("Next: polyseme train TASK.toml, with a network of choice"))
