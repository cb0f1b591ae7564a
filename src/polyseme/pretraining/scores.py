"""The probability of each word of a sentence, and so of the sentence (the chain rule)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyseme.errors import InputError, ModelError
from polyseme.model import Model
from polyseme.text.running import RunningText

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

    def as_json(self) -> dict[str, Any]:
        """Plain values, in bits: what `polyseme score --json` prints."""
        parts = {
            name: {"words": [in_bits(value) for value in part.words], "total": in_bits(part.total)}
            for name, part in self.parts.items()
        }
        return {"words": list(self.words), "total": in_bits(self.total), **parts}


def in_bits(value: float) -> float:
    """A natural logarithm as one to base 2."""
    return value / math.log(2)


def score_texts(folder: Path, texts: Sequence[str]) -> list[Score]:
    """The sentences of all texts, in order, by the model in a folder."""
    model = Model.load(folder)
    if model.config.objective.kind not in ("bidirectional", "causal"):
        raise ModelError(
            f"{folder} predicts '{model.config.objective.kind}', which gives no probability "
            "of a sentence. Score with a bidirectional (ELMo) or causal (GPT) model."
        )
    reader = RunningText(model.preparation)
    sentences = [sentence for text in texts for sentence in reader.sentences(text)]
    if not sentences:
        raise InputError("There is no word in what was given. Quote each sentence.")
    return list(score_sentences(model, sentences))


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
