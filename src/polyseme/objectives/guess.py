"""What an objective makes of an encoded batch, and what that costs or how likely it is.

An objective says which vectors are to tell which part's answers, and by which head; the rest is
the same for all of them and stands here.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from torch import Tensor

from polyseme.objectives.question import Candidates, Question


class Head(Protocol):
    """From a vector to an answer."""

    def loss(
        self, vectors: Tensor, answers: Tensor, *, table: Tensor | None, drawn: Candidates | None
    ) -> Tensor:
        """What training lowers, summed over (N, D) vectors."""

    def log_probabilities(
        self, vectors: Tensor, answers: Tensor, *, table: Tensor | None
    ) -> Tensor:
        """(N,) natural log of each answer's probability among all there are."""


class Guess(NamedTuple):
    """One part of the loss: the vectors that are to tell its answers, and the head that does."""

    head: Head
    vectors: Tensor  # (N, D)


def losses(
    guesses: Mapping[str, Guess], question: Question, table: Tensor | None
) -> dict[str, Tensor]:
    """What training lowers, for each part summed over its answers."""
    return {
        part: guess.head.loss(
            guess.vectors, question.asked[part].answers, table=table, drawn=question.candidates
        )
        for part, guess in guesses.items()
    }


def log_probabilities(
    guesses: Mapping[str, Guess], question: Question, table: Tensor | None
) -> dict[str, Tensor]:
    """For each part (N,), one for each place asked about."""
    return {
        part: guess.head.log_probabilities(guess.vectors, question.asked[part].answers, table=table)
        for part, guess in guesses.items()
    }
