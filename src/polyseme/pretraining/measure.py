"""Held-out perplexity: among all words, in each direction, the marks predicted too."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from polyseme.batches.alphabet import Integers
from polyseme.batches.batch import Batch
from polyseme.batches.counting import training_counts
from polyseme.batches.lexicon import Lexicon
from polyseme.batches.marks import END, START
from polyseme.batches.stream import BatchConfig, held_out
from polyseme.model import LanguageModel, Model
from polyseme.objectives.masked import NEXT
from polyseme.objectives.question import Question
from polyseme.progress import NullProgress, Progress
from polyseme.text.corpus import Corpus

_BATCHES = BatchConfig(words=8192)


@dataclass
class Tally:
    """Log-probabilities added up, part by part."""

    totals: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    targets: dict[str, Integers] = field(default_factory=dict)
    """How often each id was to be predicted."""

    def add(self, network: LanguageModel, question: Question) -> None:
        """One batch more. Summed in float64: perplexity is told to more digits than float32 has."""
        for name, found in network.log_probabilities(question).items():
            self.totals[name] = self.totals.get(name, 0.0) + float(found.double().sum())
            self.counts[name] = self.counts.get(name, 0) + len(found)
            ids = np.bincount(question.asked[name].answers.cpu().numpy())
            self.targets[name] = _added(self.targets.get(name, ids[:0]), ids)

    @property
    def perplexities(self) -> dict[str, float]:
        """For each part, e to the mean negative log-probability."""
        return {
            name: math.exp(min(700.0, -total / max(1, self.counts[name])))
            for name, total in self.totals.items()
        }


def unigram_perplexities(found: Tally, lexicon: Lexicon, corpus: Corpus) -> dict[str, float]:
    """What a model would reach on the same predictions that knows only how frequent words are.

    It costs nothing: frequencies in the training part are known, and targets were counted.
    """
    counts = corpus.accounting
    sentences = counts["sentences"] - counts["held_out_sentences"]
    frequency = np.zeros(lexicon.size)
    for piece in training_counts(corpus.vocabulary):
        ids = lexicon.ids_of(piece["word"])
        frequency += np.bincount(ids, piece["count"].to_numpy(), minlength=lexicon.size)
    total = frequency.sum() + sentences  # a sentence ends at its end or, backward, at its start
    frequency[[START, END]] = sentences
    log_share = np.log(np.maximum(frequency, 1) / total)
    return {
        name: math.exp(-float(ids @ log_share[: len(ids)]) / ids.sum())
        for name, ids in found.targets.items()
        if name != NEXT and ids.sum()
    }


def _added(one: Integers, other: Integers) -> Integers:
    total = np.zeros(max(len(one), len(other)), np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def fixed_questions(
    network: LanguageModel, lexicon: Lexicon, batches: Iterable[Batch]
) -> Iterable[Question]:
    """What is asked about held-out batches: always the same, whatever the run's seed."""
    for number, batch in enumerate(batches):
        yield network.objective.ask(batch, lexicon, np.random.default_rng([0, number]))


def tally(
    network: LanguageModel,
    questions: Iterable[Question],
    on_words: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Probabilities of all answers, without dropout and in float32; tells of words as it reads."""
    device = str(next(network.parameters()).device)
    was_training = network.training
    network.eval()
    found, done = Tally(), 0
    for question in questions:
        found.add(network, question.to(device))
        done += question.num_words
        on_words(done)
    network.train(was_training)
    return found


def measure(
    model: Model,
    corpus: Corpus,
    *,
    limit_words: int | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Probabilities over all held-out sentences, or about so many words of them, evenly spread."""
    progress = progress or NullProgress()
    network, lexicon, counts = model.network, model.lexicon, corpus.accounting
    total = counts["held_out_words"] + 2 * counts["held_out_sentences"]
    progress.start("Measuring", min(total, limit_words or total))
    pairs = network.objective.pairs
    batches = held_out(corpus, lexicon, _BATCHES, limit_words=limit_words, pairs=pairs)
    return tally(network, fixed_questions(network, lexicon, batches), progress.update)
