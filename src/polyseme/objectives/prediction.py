"""What an objective makes of a batch, and what that costs, how likely it is or how often right.

An objective says which vectors are to predict which targets, and by which head; the rest is the
same for all of them and stands here.

No objective: a model that reads and predicts nothing, as published weights without a softmax.

What one training step has to predict. Everything random is settled here, before any process
works: so targets can be sharded, and all processes together predict what one alone would.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, NoReturn, Protocol

import numpy as np
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import BOS, EOS, Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.devices import moved
from polyseme.encoders.encoded import Encoded
from polyseme.errors import ModelError


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
        return Targets(*(moved(each, device) for each in (self.rows, self.columns, self.ids)))


@dataclass(frozen=True, eq=False)
class Negatives:
    """The sampled negatives of a sampled softmax, the same for all positions."""

    ids: Tensor  # (K,)
    num_tries: int
    """How many draws it took to find so many different ones."""

    def to(self, device: str) -> "Negatives":
        """The same on another device."""
        return Negatives(moved(self.ids, device), self.num_tries)


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


Encode = Callable[[Batch], Encoded]
"""The encoder, as an objective sees it: it may be called as often as an objective likes."""

HeldOutMeasure = Literal["perplexity", "accuracy"]
"""How well a head predicts held-out text: lower perplexity is better, and higher accuracy."""


class Head(Protocol):
    """From a vector to one of V ids. `table` is the input's, for a head that is tied to it."""

    measure: HeldOutMeasure

    def losses(
        self,
        parts: Sequence[tuple[Tensor, Tensor]],
        *,
        table: Tensor | None,
        negatives: Negatives | None,
    ) -> Sequence[Tensor]:
        """What training lowers, for each (N, D) vectors and (N,) targets summed over them."""

    def log_probabilities(
        self, vectors: Tensor, targets: Tensor, *, table: Tensor | None
    ) -> Tensor:
        """(N,) natural log of each target's probability among all V."""

    def top_k(self, vectors: Tensor, k: int, *, table: Tensor | None) -> tuple[Tensor, Tensor]:
        """(N, k) natural logs of the highest probabilities, falling; and (N, k) their ids."""

    def logits(self, vectors: Tensor, ids: Tensor, *, table: Tensor | None) -> Tensor:
        """(N, K) log-probabilities of these K ids, up to a constant for each vector."""


class Prediction(NamedTuple):
    """One part of the loss: vectors, the ids they are to predict, and the head that does."""

    head: Head
    vectors: Tensor  # (N, D)
    targets: Tensor  # (N,)

    @classmethod
    def at(cls, head: Head, vectors: Tensor, targets: Targets) -> "Prediction":
        """From the vectors (B, T, D) at the targets' own positions."""
        return cls(head, vectors[targets.rows, targets.columns], targets.ids)


class Scores(NamedTuple):
    """How well one part of a batch was predicted."""

    measure: HeldOutMeasure
    values: Tensor  # (N,)
    """For perplexity the log-probability of each target; for accuracy 1 where it came first."""
    targets: Tensor  # (N,)


def losses(
    predictions: Mapping[str, Prediction], table: Tensor | None, negatives: Negatives | None
) -> dict[str, Tensor]:
    """What training lowers, for each part summed over its targets."""
    found: dict[str, Tensor] = {}
    # All parts of a head together: the gradient of its weights is as large as they are.
    for head in dict.fromkeys(prediction.head for prediction in predictions.values()):
        own = {part: each[1:] for part, each in predictions.items() if each.head is head}
        told = head.losses(list(own.values()), table=table, negatives=negatives)
        found |= zip(own, told, strict=True)
    return {part: found[part] for part in predictions}


def log_probabilities(
    predictions: Mapping[str, Prediction], table: Tensor | None
) -> dict[str, Tensor]:
    """For each part (N,), one for each target."""
    return {
        part: head.log_probabilities(vectors, targets, table=table)
        for part, (head, vectors, targets) in predictions.items()
    }


def scores(predictions: Mapping[str, Prediction], table: Tensor | None) -> dict[str, Scores]:
    """Each part as its head is measured."""
    found = {}
    for part, (head, vectors, targets) in predictions.items():
        match head.measure:
            case "perplexity":
                values = head.log_probabilities(vectors, targets, table=table)
            case "accuracy":
                values = head.top_k(vectors, 1, table=table)[1][:, 0] == targets
        found[part] = Scores(head.measure, values, targets)
    return found


class EncoderOnlyConfig(Settings):
    """Nothing is predicted: the weights came without a softmax. Such a model can only embed."""

    direction: ClassVar[None] = None
    reason: ClassVar[str] = ""
    softmax: ClassVar[None] = None

    kind: Literal["encoder_only"] = "encoder_only"


class EncoderOnly(nn.Module):
    """Stands where an objective would, and says so when it is asked to predict."""

    pairs = False

    def make_targets(
        self,
        batch: Batch,  # noqa: ARG002
        vocabulary: Vocabulary,  # noqa: ARG002
        random: np.random.Generator,  # noqa: ARG002
    ) -> TrainingTargets:
        """Refuses."""
        _refuse()

    def predict(self, encode: Encode, targets: TrainingTargets) -> dict[str, Prediction]:  # noqa: ARG002
        """Refuses."""
        _refuse()


def _refuse() -> NoReturn:
    raise ModelError(
        "This model cannot predict words (objective.kind = 'encoder_only'): its weights have no "
        "softmax. It can embed; to train, score or evaluate, use a model made with pretrain."
    )
