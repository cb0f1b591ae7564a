"""A trained task that tags words, at work on the sentences of a corpus that is being prepared.

    in   the words of sentences
    out  a tag for each word: `prepare --annotate upos`

Sentences are read in the batches that a shard makes of them, by one thread: what a tag is depends
on the shard and not on the worker. The processor does it also where there is a GPU, since there may
be as many workers as it has cores.
"""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import Self

from polyseme.devices import one_thread
from polyseme.errors import ConfigError, ExecutorError
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import MANIFEST
from polyseme.storage.installed import task_folder
from polyseme.storage.store import is_url
from polyseme.tasks.families.tagging import PredictedTags, Tagged, Tagging
from polyseme.tasks.spans import OUTSIDE
from polyseme.tasks.task import Task, best_in
from polyseme.text.annotation import Annotate


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
