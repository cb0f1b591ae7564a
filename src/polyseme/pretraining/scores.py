"""The probability of each word of a sentence, and so of the sentence (the chain rule)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from polyseme.model import Model

_BATCH = 64


@dataclass(frozen=True)
class Part:
    """One direction: natural logarithms."""

    words: tuple[float, ...]
    """For each word of the sentence, given all before it (after it, when backward)."""
    total: float
    """Of the whole sentence, its far end included."""


@dataclass(frozen=True)
class Score:
    """A sentence and how likely it is."""

    words: tuple[str, ...]
    parts: dict[str, Part]

    @property
    def total(self) -> float:
        """The mean over directions of the sentence's log-probability."""
        return sum(part.total for part in self.parts.values()) / len(self.parts)


def score_sentences(model: Model, sentences: Sequence[Sequence[str]]) -> Iterator[Score]:
    """Scores in the order of the sentences; a batch of them is in memory at a time."""
    network = model.network.eval()
    for begin in range(0, len(sentences), _BATCH):
        some = sentences[begin : begin + _BATCH]
        batch = model.lexicon.batch(some)
        question = network.objective.ask(batch, model.lexicon, np.random.default_rng(0))
        with torch.no_grad():
            found = network.log_probabilities(question)
        for row, words in enumerate(some):
            parts = {}
            for name, asked in question.asked.items():
                values = found[name][asked.rows == row].tolist()
                # Forward, the last place asks for the end; backward, the first asks for the start.
                of_words = values[:-1] if name == "forward" else values[1:]
                parts[name] = Part(tuple(of_words), sum(values))
            yield Score(tuple(words), parts)
