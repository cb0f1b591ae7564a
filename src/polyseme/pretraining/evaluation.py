"""How well a model predicts held-out text: perplexity among all words, in each direction, special
tokens predicted too; accuracy where something else than a word is predicted.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from polyseme.data.batch import BOS, EOS, Batch, Integers
from polyseme.data.stream import BatchConfig, held_out
from polyseme.data.vocabulary import Vocabulary, training_counts
from polyseme.model import LanguageModel, Model
from polyseme.objectives.prediction import HeldOutMeasure, Scores
from polyseme.objectives.targets import TrainingTargets
from polyseme.progress import NullProgress, Progress
from polyseme.text.corpus import Corpus

_BATCHES = BatchConfig(words=8192)


@dataclass
class PartEvaluation:
    """One part of the loss over all batches so far."""

    measure: HeldOutMeasure
    total: float = 0.0
    count: int = 0
    targets: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """How often each id was to be predicted."""

    def add(self, scores: Scores) -> None:
        """One batch more. Summed in float64: perplexity has more digits than float32."""
        self.total += float(scores.values.double().sum())
        self.count += len(scores.values)
        self.targets = _added(self.targets, np.bincount(scores.targets.cpu().numpy()))

    @property
    def value(self) -> float:
        """The measure."""
        mean = self.total / max(1, self.count)
        match self.measure:
            case "perplexity":
                return math.exp(min(700.0, -mean))
            case "accuracy":
                return mean


@dataclass
class Evaluation:
    """How well a model predicts held-out text, part by part."""

    parts: dict[str, PartEvaluation] = field(default_factory=dict)

    def add(self, network: LanguageModel, targets: TrainingTargets) -> None:
        """One batch more."""
        for name, scores in network.scores(targets).items():
            self.parts.setdefault(name, PartEvaluation(scores.measure)).add(scores)

    def values(self, measure: HeldOutMeasure) -> dict[str, float]:
        """The parts that are measured so."""
        return {name: part.value for name, part in self.parts.items() if part.measure == measure}

    @property
    def measures(self) -> dict[str, float]:
        """Every part's value, named after part and measure: `forward_perplexity`."""
        return {f"{name}_{part.measure}": part.value for name, part in self.parts.items()}


def unigram_perplexities(
    evaluation: Evaluation, vocabulary: Vocabulary, corpus: Corpus
) -> dict[str, float]:
    """What a model would reach on the same predictions that knows only how frequent words are.

    It costs nothing: frequencies in the training part are known, and targets were counted.
    """
    log_share = unigram_log_shares(vocabulary, corpus)
    return {
        name: math.exp(-float(part.targets @ log_share[: len(part.targets)]) / part.count)
        for name, part in evaluation.parts.items()
        if part.measure == "perplexity" and part.count
    }


def unigram_log_shares(vocabulary: Vocabulary, corpus: Corpus) -> npt.NDArray[np.float64]:
    """(V,): how frequent each word of a vocabulary is in the training part of a corpus."""
    counts = corpus.read_stats
    sentences = counts["sentences"] - counts["held_out_sentences"]
    frequency = np.zeros(vocabulary.size)
    for piece in training_counts(corpus.vocabulary):
        ids = vocabulary.ids_of(piece["word"])
        frequency += np.bincount(ids, piece["count"].to_numpy(), minlength=vocabulary.size)
    total = frequency.sum() + sentences  # a sentence ends at its end or, backward, at its start
    frequency[[BOS, EOS]] = sentences
    shares: npt.NDArray[np.float64] = np.log(np.maximum(frequency, 1) / total)
    return shares


def _added(one: Integers, other: Integers) -> Integers:
    total = np.zeros(max(len(one), len(other)), np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def fixed_targets(
    network: LanguageModel, vocabulary: Vocabulary, batches: Iterable[Batch]
) -> Iterable[TrainingTargets]:
    """What is to be predicted in held-out batches: always the same, whatever the run's seed."""
    for number, batch in enumerate(batches):
        yield network.objective.make_targets(batch, vocabulary, np.random.default_rng([0, number]))


def evaluate_targets(
    network: LanguageModel,
    some: Iterable[TrainingTargets],
    on_words: Callable[[int], None] = lambda _: None,
    *,
    precision: str = "float32",
) -> Evaluation:
    """Predict all targets, without dropout; tells of words as it reads."""
    device = str(next(network.parameters()).device)
    is_half = precision == "bfloat16"
    was_training = network.training
    network.eval()
    found, done = Evaluation(), 0
    for targets in some:
        with torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=is_half):
            found.add(network, targets.to(device))
        done += targets.num_words
        on_words(done)
    network.train(was_training)
    return found


def evaluate(
    model: Model,
    corpus: Corpus,
    *,
    limit_words: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Over all held-out sentences, or about so many words of them, evenly spread."""
    progress = progress or NullProgress()
    network, vocabulary, counts = model.network, model.vocabulary, corpus.read_stats
    total = counts["held_out_words"] + 2 * counts["held_out_sentences"]
    progress.start("Evaluating", min(total, limit_words or total))
    pairs = network.objective.pairs
    batches = held_out(corpus, vocabulary, _BATCHES, limit_words=limit_words, pairs=pairs)
    return evaluate_targets(network, fixed_targets(network, vocabulary, batches), progress.update)
