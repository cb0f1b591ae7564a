"""What an objective makes of a batch, and what that costs, how likely it is or how often right.

An objective says which vectors are to predict which targets, and by which head; the rest is the
same for all of them and stands here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from torch import Tensor

from polyseme.data.batch import Batch
from polyseme.encoders.encoded import Encoded
from polyseme.objectives.targets import Negatives, Targets

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
