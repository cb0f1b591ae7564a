"""What one training step has to predict. Everything random is settled here, before any process
works: so targets can be sharded, and all processes together predict what one alone would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from polyseme.data.batch import BOS, EOS, Batch


@dataclass(frozen=True, eq=False)
class Targets:
    """One part of the loss: at these positions, these ids are to be predicted."""

    rows: Tensor  # (N,) sentence of the batch
    columns: Tensor  # (N,) word of the sentence
    ids: Tensor  # (N,)

    def shard(self, rank: int, world_size: int) -> "Targets":
        """Those in every `world_size`-th sentence from `rank` on."""
        mine = self.rows % world_size == rank
        return Targets(self.rows[mine] // world_size, self.columns[mine], self.ids[mine])

    def to(self, device: str) -> "Targets":
        """The same on another device."""
        return Targets(self.rows.to(device), self.columns.to(device), self.ids.to(device))


@dataclass(frozen=True, eq=False)
class Negatives:
    """The sampled negatives of a sampled softmax, the same for all positions."""

    ids: Tensor  # (K,)
    num_tries: int
    """How many draws it took to find so many different ones."""

    def to(self, device: str) -> "Negatives":
        """The same on another device."""
        return Negatives(self.ids.to(device), self.num_tries)


@dataclass(frozen=True, eq=False)
class TrainingTargets:
    """What one training step works on: a batch and, for each part of the loss, its targets."""

    batch: Batch
    parts: Mapping[str, Targets]
    negatives: Negatives | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many predictions each part of the loss has."""
        return {name: len(part.ids) for name, part in self.parts.items()}

    @property
    def num_words(self) -> int:
        """Words read, special tokens counted."""
        return self.batch.num_words

    def only(self, *names: str) -> "TrainingTargets":
        """Those parts of the loss that have one of these names."""
        parts = {name: part for name, part in self.parts.items() if name in names}
        return replace(self, parts=parts)

    def shard(self, rank: int, world_size: int) -> "TrainingTargets":
        """Every `world_size`-th sentence from `rank` on, and the targets in those."""
        if world_size == 1:
            return self
        rows = range(rank, len(self.batch.lengths), world_size)
        # With fewer sentences than shards, some read the first one and predict nothing.
        indices = self.batch.lengths.new_tensor(list(rows) or [0])
        parts = {name: part.shard(rank, world_size) for name, part in self.parts.items()}
        return TrainingTargets(self.batch.select(indices), parts, self.negatives)

    def to(self, device: str) -> "TrainingTargets":
        """The same on another device."""
        parts = {name: part.to(device) for name, part in self.parts.items()}
        negatives = self.negatives and self.negatives.to(device)
        return TrainingTargets(self.batch.to(device), parts, negatives)


@dataclass(frozen=True, eq=False)
class OwnTargets:
    """A step of which this process has built its own sentences only; those of all are counted."""

    own: TrainingTargets
    shards: range
    """Which of all shards the sentences are: the n-th is every `len(shards)`-th of them from n."""
    counts: Mapping[str, int]
    num_words: int

    def shard(self, rank: int, world_size: int) -> TrainingTargets:
        """The same as of the whole step."""
        del world_size
        return self.own.shard(rank - self.shards.start, len(self.shards))

    def to(self, device: str) -> "OwnTargets":
        """The same on another device."""
        return replace(self, own=self.own.to(device))


def word_ids(batch: Batch) -> Tensor:
    """(B, T) the vocabulary id of each word."""
    return batch.ids[batch.words]


def next_words(batch: Batch) -> Targets:
    """At every word but the last of its row: the word after it."""
    rows, columns = batch.mask[:, 1:].nonzero(as_tuple=True)
    return Targets(rows, columns, word_ids(batch)[rows, columns + 1])


def previous_words(batch: Batch) -> Targets:
    """At every word but the first of its row: the word before it."""
    rows, columns = batch.mask[:, 1:].nonzero(as_tuple=True)
    return Targets(rows, columns + 1, word_ids(batch)[rows, columns])


def all_words(batch: Batch) -> Targets:
    """At every word that is no special token, in reading order: the word itself."""
    ids = word_ids(batch)
    is_word = batch.mask & (ids != BOS) & (ids != EOS)
    rows, columns = is_word.nonzero(as_tuple=True)
    return Targets(rows, columns, ids[rows, columns])
