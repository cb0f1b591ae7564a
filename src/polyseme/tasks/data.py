"""The labelled data of a task: read, split into words, and gathered into batches.

in   files of examples, named in the settings
out  a `DataSet` for each: `batch` gives what a step or a prediction needs
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field

from polyseme.config import Settings
from polyseme.data.batch import Integers
from polyseme.errors import ConfigError, InputError
from polyseme.progress import SILENT, Progress
from polyseme.tasks.embeddings.embeddings import Embeddings
from polyseme.tasks.families import NetworkConfig, family_of
from polyseme.tasks.families.family import Example, TaskBatch, TaskFamily, select
from polyseme.tasks.readers import ReaderConfig, load_examples
from polyseme.tasks.readers.labelled import TreesConfig
from polyseme.tasks.texts import ExampleStats, TextReader
from polyseme.text.preprocessing import UnfitTextError

_DEV_EVERY = 10  # without development data, so many training examples give one for it
_PLACES = 1 << 15  # words labelled at once, padding counted
_POOL = 30  # batches among which examples are sorted by length


class DataConfig(Settings):
    """The files of examples. Paths are relative to the working directory."""

    train: Path
    """Training data."""
    dev: Path | None = None
    """Development data, which decides when to stop; by default every tenth training example."""
    test: Path | None = None
    """Test data, for `polyseme evaluate`; training never opens it."""
    reader: ReaderConfig
    """Format of the files."""
    share: float = Field(1.0, gt=0, le=1)
    """Fraction of the training examples to use, spread over the file."""
    tokenizer_from: Path | None = None
    """Tokenization of examples that are running text: that of the model or the corpus in a folder,
    or of a language (en, zh); by default that of the model of the embeddings."""


class Split(NamedTuple):
    """The examples of one file, as words."""

    examples: list[Example]
    stats: ExampleStats


def read_split(
    path: Path,
    reader: ReaderConfig,
    network: NetworkConfig,
    *,
    text_reader: TextReader,
    to_learn: bool = False,
) -> Split:
    """All examples of a file, those without a word counted and rejected.

    `to_learn`: subtrees are examples to learn from; what is measured on are whole sentences.
    """
    if isinstance(reader, TreesConfig) and not to_learn:
        reader = reader.model_copy(update={"subtrees": False})
    loaded, stats = load_examples(path, reader)
    kinds = family_of(network).example_types
    if not isinstance(loaded[0], kinds):
        wanted = " or ".join(kind.__name__.lower() for kind in kinds)
        raise ConfigError(
            f"A network of kind {network.kind!r} learns from examples that are {wanted}, and "
            f"{path} has {type(loaded[0]).__name__.lower()} ones. Choose another network.kind, or "
            "another reader."
        )
    examples = []
    for place, example in enumerate(loaded, start=1):
        try:
            worded = example.with_words(text_reader)
        except UnfitTextError as error:
            stats.withdraw(error.reason, f"{path}, example {place}")
            continue
        if all(worded.sentences):
            examples.append(worded)
        else:
            stats.withdraw("no-word", f"{path}, example {place}")
    if not examples:
        raise InputError(f"{path} has no example with a word in it.")
    return Split(examples, stats)


def subsample(examples: Sequence[Example], share: float) -> list[Example]:
    """A share of the examples, evenly spread; a smaller share is part of a larger one."""
    # The golden ratio's multiples fill the unit interval evenly at every length.
    place = np.arange(len(examples)) * 0.6180339887498949 % 1.0
    kept = [example for example, at in zip(examples, place, strict=True) if at < share]
    return kept or list(examples[:1])


def without_dev(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Training examples, and every tenth of them kept apart."""
    dev = [example for n, example in enumerate(examples) if n % _DEV_EVERY == _DEV_EVERY - 1]
    rest = [example for n, example in enumerate(examples) if n % _DEV_EVERY != _DEV_EVERY - 1]
    if not dev:
        raise InputError(
            f"{len(examples)} training examples are too few to split off development data. "
            "Set data.dev."
        )
    return rest, dev


class DataSet:
    """Examples, their features looked up beforehand."""

    def __init__(
        self,
        examples: Sequence[Example],
        family: TaskFamily[Any, Any],
        embeddings: Embeddings,
        *,
        with_gold: bool = False,
        use_cache: bool = True,
        progress: Progress = SILENT,
    ) -> None:
        """`with_gold`: of examples to learn from. `use_cache`: see `Embeddings.prepare`."""
        self.examples = examples
        self._features, self._rows = family.prepare(
            examples, embeddings, use_cache=use_cache, progress=progress
        )
        if number := self._features.num_truncated:
            progress.log(f"{number:,} words are truncated: their rows are too long.")
        self._columns = family.encode(examples, with_gold=with_gold)

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def lengths(self) -> Integers:
        """Words in the longest sentence of each example."""
        longest: Integers = np.where(self._rows < 0, 0, self._features.lengths[self._rows]).max(0)
        return longest

    def batch(self, chosen: Integers, step: int | None = None) -> TaskBatch:
        """These examples."""
        rows = self._rows[:, chosen]  # (P, B)
        part, example = np.nonzero(rows >= 0)  # all first sentences first
        return TaskBatch.of(
            self._features.gather(rows[part, example]),
            torch.from_numpy(example),
            select(self._columns, chosen),
            num_examples=len(chosen),
            step=step,
        )

    def in_order(self, size: int) -> Iterator[Integers]:
        """All examples, those of like length together, so that little is padding."""
        places = self.lengths * (self._rows >= 0).sum(axis=0)
        order = np.argsort(-places, kind="stable")
        begin = 0
        while begin < len(order):  # of long ones fewer, so that they fit in memory
            fitting = max(1, min(size, _PLACES // max(1, int(places[order[begin]]))))
            yield order[begin : begin + fitting]
            begin += fitting

    def shuffled(self, size: int, random: np.random.Generator) -> list[Integers]:
        """All examples in batches by chance, of like length within each."""
        pools = _POOL * size
        order = random.permutation(len(self))
        lengths = self.lengths
        for begin in range(0, len(order), pools):
            pool = order[begin : begin + pools]
            order[begin : begin + pools] = pool[np.argsort(lengths[pool], kind="stable")]
        batches = [order[begin : begin + size] for begin in range(0, len(order), size)]
        return [batches[number] for number in random.permutation(len(batches))]
