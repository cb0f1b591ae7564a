"""How well a model predicts held-out text: perplexity among all words, in each direction, special
tokens predicted too; accuracy where something else than a word is predicted.

The probability of each word of a sentence, and so of the sentence (the chain rule).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from polyseme.data.batch import BOS, EOS, Batch, Integers
from polyseme.data.ngrams import NgramConfig, scratch_for_counting, sentence_log_probabilities
from polyseme.data.stream import BatchConfig, held_out
from polyseme.data.vocabulary import Vocabulary, training_counts
from polyseme.display import html_table, sentence, summary
from polyseme.errors import InputError, ModelError
from polyseme.model import LanguageModel, Model
from polyseme.objectives.prediction import HeldOutMeasure, Scores, TrainingTargets
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import TextPreprocessor

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
        counts = np.bincount(scores.targets.cpu().numpy(), minlength=len(self.targets))
        counts[: len(self.targets)] += self.targets
        self.targets = counts

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
    progress: Progress = SILENT,
) -> Evaluation:
    """Over all held-out sentences, or about so many words of them, evenly spread."""
    network, vocabulary, counts = model.network, model.vocabulary, corpus.read_stats
    total = counts["held_out_words"] + 2 * counts["held_out_sentences"]
    progress.start("Evaluating", min(total, limit_words or total))
    pairs = network.objective.pairs
    batches = held_out(corpus, vocabulary, _BATCHES, limit_words=limit_words, pairs=pairs)
    return evaluate_targets(network, fixed_targets(network, vocabulary, batches), progress.update)


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
    progress: Progress = SILENT,
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
