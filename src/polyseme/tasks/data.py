"""The labelled data of a task: read, split into words, and gathered into batches.

in   files of examples, named in the settings
out  a `DataSet` for each: `batch` gives what a step or a prediction needs
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch.nn.utils.rnn import pad_sequence

from polyseme.batches.alphabet import Integers
from polyseme.config import Settings
from polyseme.errors import ConfigError, InputError
from polyseme.model import preparation_of
from polyseme.progress import Progress
from polyseme.tasks.account import Account
from polyseme.tasks.batch import TaskBatch
from polyseme.tasks.examples import Classified, Example, Paired, Tagged, Words, with_words
from polyseme.tasks.labels import Labels, due
from polyseme.tasks.networks import NetworkConfig
from polyseme.tasks.networks.joined import JoinedConfig
from polyseme.tasks.readers import ReaderConfig, load_examples
from polyseme.tasks.readers.trees import TreesConfig
from polyseme.transfer.feed import Feed
from polyseme.transfer.supply import Supply
from polyseme.vectors.reading import Reader

_FAMILIES: dict[str, tuple[type, ...]] = {
    "tagging": (Tagged,),
    "classification": (Classified,),
    "pairs": (Paired,),
    "joined": (Classified, Paired),
}
_DEV_EVERY = 10  # without development data, so many training examples give one for it
_PLACES = 1 << 15  # words answered at once, padding counted
_POOL = 30  # batches among which examples are sorted by length


class DataConfig(Settings):
    """The files of examples. Paths are from where the command is called."""

    train: Path
    """What is learned from."""
    dev: Path | None = None
    """What decides when to stop; without it, every tenth example of the training data."""
    test: Path | None = None
    """What `polyseme evaluate` measures on; training never opens it."""
    reader: ReaderConfig
    """How the files are laid out."""
    share: float = Field(1.0, gt=0, le=1)
    """Share of the training examples that is used, spread over the file."""
    words_like: Path | None = None
    """Model whose way of finding words is used where examples are running text; by default the
    model the task is fed by."""


class Split(NamedTuple):
    """The examples of one file, as words."""

    examples: list[Example]
    account: Account


def read_split(
    path: Path,
    reader: ReaderConfig,
    network: NetworkConfig,
    *,
    words_like: Path | None,
    to_learn: bool = False,
) -> Split:
    """All examples of a file, those without a word counted and set aside.

    `to_learn`: subtrees are examples to learn from; what is measured on are whole sentences.
    """
    if isinstance(reader, TreesConfig) and not to_learn:
        reader = reader.model_copy(update={"subtrees": False})
    loaded, account = load_examples(path, reader)
    kinds = _FAMILIES[network.kind]
    if not isinstance(loaded[0], kinds):
        wanted = " or ".join(kind.__name__.lower() for kind in kinds)
        raise ConfigError(
            f"A network of kind {network.kind!r} learns from examples that are {wanted}, and "
            f"{path} has {type(loaded[0]).__name__.lower()} ones. Choose another network.kind, or "
            "another reader."
        )
    split = Splitter(words_like)
    examples = []
    for place, example in enumerate(loaded, start=1):
        worded = with_words(example, split)
        if all(sentences_of(worded)):
            examples.append(worded)
        else:
            account.withdraw("no-word", f"{path}, example {place}")
    if not examples:
        raise InputError(f"{path} has no example with a word in it.")
    return Split(examples, account)


class Splitter:
    """Running text in, its words out, found as a model's were. Loads a segmenter when needed."""

    def __init__(self, model: Path | None) -> None:
        self._model = model
        self._reader: Reader | None = None

    def __call__(self, text: str) -> Words:
        """The words of all sentences of a text."""
        if self._model is None:
            raise ConfigError(
                "The examples are running text, and nothing says how to find its words. Name a "
                "model in data.words_like: its words are found in the same way."
            )
        if self._reader is None:
            self._reader = Reader(preparation_of(self._model))
        return self._reader.words(text)


def thin(examples: Sequence[Example], share: float) -> list[Example]:
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
            f"{len(examples)} training examples are too few to keep some apart. Name dev data."
        )
    return rest, dev


def sentences_of(example: Example) -> tuple[Words, ...]:
    """The one or two sentences of an example, as words."""
    match example:
        case Tagged():
            return (example.words,)
        case Classified():
            assert isinstance(example.text, tuple)
            return (example.text,)
        case Paired():
            assert isinstance(example.first, tuple)
            assert isinstance(example.second, tuple)
            return example.first, example.second


class DataSet:
    """Examples, looked up by a feed beforehand."""

    def __init__(
        self,
        examples: Sequence[Example],
        network: NetworkConfig,
        feed: Feed,
        *,
        labels: Labels | None = None,
        kept: bool = True,
        progress: Progress | None = None,
    ) -> None:
        """`labels`: of examples to learn from. `kept`: see `Feed.prepare`."""
        self.examples = examples
        rows = [sentences_of(example) for example in examples]
        if isinstance(network, JoinedConfig):
            turned = [row[::-1] for row in rows] if network.both_orders else []
            self._supply: Supply = feed.prepare_joined([*rows, *turned])
        else:
            # All first sentences, then all second ones, as in a batch.
            sentences = [row[part] for part in range(len(rows[0])) for row in rows]
            self._supply = feed.prepare(sentences, kept=kept, progress=progress)
        if self._supply.num_cut and progress:
            cut = f"{self._supply.num_cut:,} words are not read: their rows are too long."
            progress.log(cut)
        marks = [getattr(example, "marked", None) for example in examples]
        self._marked: Integers = np.array([-1 if m is None else m for m in marks], np.int64)
        self._answers = labels and [labels.encode(due(example, network)) for example in examples]

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def lengths(self) -> Integers:
        """Words in the longest sentence of each example."""
        longest: Integers = self._supply.lengths.reshape(-1, len(self)).max(axis=0)
        return longest

    def batch(self, chosen: Integers, step: int | None = None) -> TaskBatch:
        """These examples."""
        parts = range(len(self._supply) // len(self))
        given = self._supply.gather(np.concatenate([chosen + part * len(self) for part in parts]))
        return TaskBatch(given, torch.from_numpy(self._marked[chosen]), self._right(chosen), step)

    def _right(self, chosen: Integers) -> torch.Tensor | None:
        if not self._answers:
            return None
        answers = [self._answers[number] for number in chosen]
        if not isinstance(self.examples[0], Tagged):
            return torch.from_numpy(np.concatenate(answers))
        return pad_sequence([torch.from_numpy(each) for each in answers], batch_first=True)

    def in_order(self, size: int) -> Iterator[Integers]:
        """All examples, those of like length together, so that little is padding."""
        lengths = self.lengths
        order = np.argsort(-lengths, kind="stable")
        begin = 0
        while begin < len(order):  # of long ones fewer, so that they fit in memory
            fitting = max(1, min(size, _PLACES // max(1, int(lengths[order[begin]]))))
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
