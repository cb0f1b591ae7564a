"""A batch with what is asked about it. Everything random is settled here, before any process works.

So a question can be shared among processes, and all of them together ask what one alone would.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from polyseme.batches.batch import Batch


@dataclass(frozen=True, eq=False)
class Asked:
    """One part of the loss: at these places, these are the answers."""

    rows: Tensor  # (N,) sentence of the batch
    columns: Tensor  # (N,) word of the sentence
    answers: Tensor  # (N,)

    def share(self, number: int, of: int) -> "Asked":
        """What is asked about every `of`-th sentence from `number` on."""
        mine = self.rows % of == number
        return Asked(self.rows[mine] // of, self.columns[mine], self.answers[mine])

    def to(self, device: str) -> "Asked":
        """The same on another device."""
        return Asked(self.rows.to(device), self.columns.to(device), self.answers.to(device))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The wrong answers a sampled softmax looks at, the same for all places."""

    ids: Tensor  # (K,)
    tries: int
    """How many draws it took to find so many different ones."""

    def to(self, device: str) -> "Candidates":
        """The same on another device."""
        return Candidates(self.ids.to(device), self.tries)


@dataclass(frozen=True, eq=False)
class Question:
    """What one training step works on."""

    batch: Batch
    asked: Mapping[str, Asked]
    candidates: Candidates | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many predictions each part of the loss has."""
        return {name: len(asked.answers) for name, asked in self.asked.items()}

    @property
    def num_words(self) -> int:
        """Words read, marks counted."""
        return self.batch.num_words

    def share(self, number: int, of: int) -> "Question":
        """Every `of`-th sentence from `number` on, and what is asked about those."""
        if of == 1:
            return self
        rows = range(number, len(self.batch.lengths), of)
        # With fewer sentences than shares, some read the first one and are asked nothing.
        indices = self.batch.lengths.new_tensor(list(rows) or [0])
        asked = {name: part.share(number, of) for name, part in self.asked.items()}
        return Question(self.batch.select(indices), asked, self.candidates)

    def to(self, device: str) -> "Question":
        """The same on another device."""
        asked = {name: part.to(device) for name, part in self.asked.items()}
        candidates = self.candidates and self.candidates.to(device)
        return Question(self.batch.to(device), asked, candidates)
