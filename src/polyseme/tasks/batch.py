"""Examples gathered for one step: what the feed needs, and the answers beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from polyseme.transfer.fed import Given


@dataclass(frozen=True, eq=False)
class TaskBatch:
    """B examples of one sentence each, or of two."""

    given: Given
    """All examples' first sentences, then, where there are two, all second ones."""
    marked: Tensor  # (B,) int64
    """Place of the word an example is about, -1 where it is about none."""
    answers: Tensor | None = None  # (B,) or (B, T) int64
    """Labels by number, 0 at padding; None where they are yet to be found."""
    step: int | None = None
    """The step of training it is for, from 0."""

    def __len__(self) -> int:
        return len(self.marked)

    @property
    def counts(self) -> Mapping[str, int]:
        """One loss for each example, however long."""
        return {"loss": len(self)}

    @property
    def num_words(self) -> int:
        """Words of all sentences."""
        return self.given.num_words

    def share(self, number: int, of: int) -> "TaskBatch":
        """Some of the examples, as if they had been gathered alone."""
        rows = torch.arange(len(self)).tensor_split(of)[number]
        parts = len(self.given.lengths) // len(self)
        given = self.given.select(torch.cat([rows + part * len(self) for part in range(parts)]))
        answers = self.answers
        if answers is not None:
            answers = answers[rows] if answers.ndim == 1 else answers[rows, : _longest(given)]
        return replace(self, given=given, marked=self.marked[rows], answers=answers)

    def to(self, device: str) -> "TaskBatch":
        """The same on another device."""
        answers = None if self.answers is None else self.answers.to(device)
        given, marked = self.given.to(device), self.marked.to(device)
        return replace(self, given=given, marked=marked, answers=answers)


def _longest(given: Given) -> int:
    return int(given.lengths.max())
