"""The probability of each word of a sentence, and so of the sentence (the chain rule)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyseme.data.ngrams import NgramConfig, scratch_for_counting, sentence_log_probabilities
from polyseme.display import html_table, sentence, summary
from polyseme.errors import InputError, ModelError
from polyseme.model import Model
from polyseme.progress import Progress
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import TextPreprocessor

_BATCH = 64


@dataclass(frozen=True)
class DirectionScore:
    """One direction: natural logarithms."""

    words: tuple[float, ...]
    """For each word of the sentence, given all before it (after it, when backward)."""
    total: float
    """Of the whole sentence, its far end included."""


@dataclass(frozen=True)
class Score:
    """A sentence and how likely it is."""

    words: tuple[str, ...]
    parts: dict[str, DirectionScore]
    ngram: DirectionScore | None = None
    """By n-grams, each word given those before it; None where no corpus was named."""

    @property
    def columns(self) -> dict[str, DirectionScore]:
        """The parts, and the n-grams beside them."""
        return self.parts if self.ngram is None else {**self.parts, "ngram": self.ngram}

    @property
    def total(self) -> float:
        """The mean over directions of the sentence's log-probability."""
        return sum(part.total for part in self.parts.values()) / len(self.parts)

    def __repr__(self) -> str:
        return summary("Score", f"{in_bits(self.total):.1f} bits", sentence(self.words))

    def _repr_html_(self) -> str:
        """A word a row; the sentence's end has no row, but is in the sum."""
        parts = self.as_json()
        rows = [
            (word, *(parts[name]["words"][place] for name in self.columns))
            for place, word in enumerate(self.words)
        ]
        rows.append(("sum", *(parts[name]["total"] for name in self.columns)))
        return html_table(f"{parts['total']:.1f} bits", rows, ("word", *self.columns))

    def as_json(self) -> dict[str, Any]:
        """Plain values, in bits: what `polyseme score --json` prints."""
        parts = {
            name: {"words": [in_bits(value) for value in part.words], "total": in_bits(part.total)}
            for name, part in self.columns.items()
        }
        return {"words": list(self.words), "total": in_bits(self.total), **parts}


def in_bits(value: float) -> float:
    """A natural logarithm as one to base 2."""
    return value / math.log(2)


def score_texts(
    folder: Path,
    texts: Sequence[str],
    *,
    ngram: Path | None = None,
    ngrams: NgramConfig | None = None,
    progress: Progress | None = None,
) -> list[Score]:
    """The sentences of all texts, in order, by the model in a folder.

    With `ngram`, a corpus, also by the n-grams of its training part, with the model's vocabulary:
    both predict the same words, and the same one unknown word.
    """
    model = Model.load(folder)
    if model.config.objective.kind not in ("bidirectional", "causal"):
        raise ModelError(
            f"{folder} predicts '{model.config.objective.kind}', which gives no probability "
            "of a sentence. Score with a bidirectional (ELMo) or causal (GPT) model."
        )
    corpus = None
    if ngram is not None:
        corpus = Corpus.open(ngram)
        corpus.check_same_words(model.preparation)
    preprocess = TextPreprocessor.of_model(model.preparation)
    sentences = [sentence.words for text in texts for sentence in preprocess(text).stored()]
    if not sentences:
        raise InputError("There is no word in what was given. Quote each sentence.")
    scores = list(score_sentences(model, sentences))
    if corpus is None:
        return scores
    with scratch_for_counting(corpus) as scratch:
        beside = sentence_log_probabilities(
            corpus,
            model.vocabulary.words,
            sentences,
            ngrams or NgramConfig(),
            scratch=Path(scratch),
            threads=torch.get_num_threads(),
            progress=progress,
        )
    # The last one is the sentence's end.
    parts = (DirectionScore(tuple(values[:-1]), math.fsum(values)) for values in beside)
    return [replace(score, ngram=part) for score, part in zip(scores, parts, strict=True)]


def score_sentences(model: Model, sentences: Sequence[Sequence[str]]) -> Iterator[Score]:
    """Scores in the order of the sentences; a batch of them is in memory at a time."""
    network = model.network.eval()
    for begin in range(0, len(sentences), _BATCH):
        some = sentences[begin : begin + _BATCH]
        batch = model.vocabulary.batch(some)
        random = np.random.default_rng(0)
        targets = network.objective.make_targets(batch, model.vocabulary, random)
        targets = targets.only("forward", "backward")  # a cloze says nothing of a sentence's own
        with torch.no_grad():
            found = network.log_probabilities(targets)
        for row, words in enumerate(some):
            parts = {}
            for name, part in targets.parts.items():
                values = found[name][part.rows == row].tolist()
                # Forward, the last target is EOS; backward, the first is BOS.
                of_words = values[:-1] if name == "forward" else values[1:]
                parts[name] = DirectionScore(tuple(of_words), sum(values))
            yield Score(tuple(words), parts)
