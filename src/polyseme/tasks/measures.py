"""How good predictions are, from numbers kept for every example; and is one system better?

    in    gold labels and predictions: a label per text, labels per word, or spans
    out   `Counts`: per example and label how often it was right, predicted, and gold;
          from its sums every measure, which labels were taken for which, and how sure we are

Counts are one kind of `ExampleScores`; a family without labels has its own. Counts per example take
N x 3 x K numbers; labels that never occur take none.

Two systems are compared by the paired bootstrap: examples are drawn again with replacement, the
same for both; how much their difference varies then is how much it would vary between test sets
(Efron and Tibshirani 1993, chapter 16; Koehn 2004). Only sums over examples are needed, so 10,000
draws take a second. Two variants of a task, each trained with several seeds, are also compared by
their seeds (`SeedComparison`).

How right an answer is: exact match and F1, as SQuAD and CMRC 2018 define them.

How right clusters of mentions are: MUC, B³, CEAF-φ4, and their mean, as at CoNLL-2012.

How like texts are to those they should be: BLEU and chrF, as sacrebleu has them.
"""

import logging
import math
import re
import string
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import load_matplotlib
from polyseme.errors import InputError, extra_needed_for
from polyseme.storage.files import scratch_for
from polyseme.tasks.spans import Span, find_spans

LABEL_MEASURES = ("accuracy", "precision", "recall", "f1", "macro-f1")
"""accuracy: right labels among all gold ones. precision, recall, f1: over all labels together, as
customary for spans. macro-f1: the mean of the labels' own, rare ones counting like frequent ones;
labels neither gold nor predicted are left out."""
CountArray: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.float64]
_RIGHT, _PREDICTED, _GOLD = range(3)


@dataclass(frozen=True, eq=False)
class ExampleScores(ABC):
    """How right one system is on N examples, in numbers of each example that add up.

    Every measure is made from their sums. So it can be made for any resample of the examples, too,
    which is what the bootstrap needs. A mean has the sums of values and of ones; F1 those of
    right, predicted and gold; BLEU those of n-grams found and given; a correlation those of
    products. The fields are arrays with a row for each example.
    """

    @abstractmethod
    def statistics(self, measure: str) -> npt.NDArray[Any]:
        """(N, ...): what each example adds to the sums that a measure is made from."""

    @abstractmethod
    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, ...) -> (R,): a measure from each of R sums. What divides by nothing is 0."""

    def concat(self, others: Sequence[Self]) -> Self:
        """These examples, and those of others after them."""
        names = [each.name for each in fields(self)]
        parts = ([getattr(each, name) for each in (self, *others)] for name in names)
        return type(self)(*map(np.concatenate, parts))

    def has_examples_of(self, other: Self) -> bool:
        """Whether both were measured on the same examples, as far as can be told."""
        return len(self) == len(other)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """What is told beside the measure, rows by the name of their table: `by_label`. Numbers
        that are shares are floats."""
        return {}

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def value(self, measure: str) -> float:
        """One measure over all examples."""
        return float(self.value_of(self.statistics(measure).sum(axis=0)[None], measure)[0])


class MeanScores(ExampleScores):
    """Measures that are the mean of a number for each example."""

    @abstractmethod
    def each(self, measure: str) -> Values:
        """(N,)"""

    def statistics(self, measure: str) -> Values:
        """(N, 2): the number and one."""
        own = self.each(measure)
        return np.stack([own, np.ones_like(own)], axis=1)

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:  # noqa: ARG002
        """(R, 2) -> (R,): the mean."""
        found: Values = sums[:, 0] / np.maximum(sums[:, 1], 1)
        return found


@dataclass(frozen=True)
class Counts(ExampleScores):
    """Counts of one system on N examples and K labels."""

    labels: tuple[str, ...]
    counts: CountArray
    """(N, 3, K): right, predicted, gold."""

    def statistics(self, measure: str) -> CountArray:
        """(N, 3, K), or (N, 3, 1): only one measure looks at labels apart."""
        is_apart = measure == "macro-f1"
        return self.counts if is_apart else self.counts.sum(axis=-1, keepdims=True)

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, 3, K) -> (R,)"""
        return value_of(sums, measure)

    def concat(self, others: "Sequence[Counts]") -> "Counts":
        """Labels of any of them are labels of the whole."""
        several = [self, *others]
        labels = sorted({label for each in several for label in each.labels})
        parts = []
        for each in several:
            counts = np.zeros((len(each.counts), 3, len(labels)), dtype=np.int64)
            counts[:, :, [labels.index(label) for label in each.labels]] = each.counts
            parts.append(counts)
        return Counts(tuple(labels), np.concatenate(parts))

    def has_examples_of(self, other: "Counts") -> bool:
        """Whether each example has as many gold labels."""
        return np.array_equal(self.num_gold(), other.num_gold())

    def num_gold(self) -> CountArray:
        """(N,): gold labels of each example."""
        found: CountArray = self.counts[:, _GOLD].sum(axis=1)
        return found

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Every label's own figures."""
        return {"by_label": [row._asdict() for row in self.by_label()]}

    def __len__(self) -> int:
        return len(self.counts)

    def by_label(self) -> "list[LabelScore]":
        """Every label's own precision, recall and F1, the most frequent first."""
        sums = self.counts.sum(axis=0)
        scores = []
        for k, label in enumerate(self.labels):
            own = sums[:, k, None]  # (3, 1), as if there were no other label
            score = LabelScore(
                label,
                precision=float(value_of(own, "precision")),
                recall=float(value_of(own, "recall")),
                f1=float(value_of(own, "f1")),
                gold=int(sums[_GOLD, k]),
                predicted=int(sums[_PREDICTED, k]),
            )
            scores.append(score)
        return sorted(scores, key=lambda score: (-score.gold, score.label))


class LabelScore(NamedTuple):
    """One row of the table of labels."""

    label: str
    precision: float
    recall: float
    f1: float
    gold: int
    predicted: int


def value_of(totals: npt.NDArray[Any], measure: str) -> Values:
    """(..., 3, K) -> (...): a measure from sums of counts. What divides by nothing is 0."""
    sums = totals.astype(np.float64)
    if measure != "macro-f1":
        sums = sums.sum(axis=-1, keepdims=True)
    right, predicted, gold = np.moveaxis(sums, -2, 0)  # (..., K or 1)
    match measure:
        case "accuracy" | "recall":
            return _ratio(right, gold)[..., 0]
        case "precision":
            return _ratio(right, predicted)[..., 0]
        case "f1":
            return _ratio(2 * right, predicted + gold)[..., 0]
        case "macro-f1":
            occurs = (predicted + gold > 0).sum(axis=-1)
            return _ratio(_ratio(2 * right, predicted + gold).sum(axis=-1), occurs)
    raise AssertionError(measure)


def count_labels(gold: Sequence[str], predicted: Sequence[str]) -> Counts:
    """Texts or pairs with one label each."""
    return count_tags([[label] for label in gold], [[label] for label in predicted])


def count_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Counts:
    """Sentences with a label for every word, each word counting by itself."""
    return _count(map(_words_alone, gold), map(_words_alone, predicted))


def count_spans(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    *,
    ignore_labels: Collection[str] = (),
) -> Counts:
    """Sentences with labels of any span scheme; right is a span with both ends and its kind.

    Labels to ignore are those that are given and not found, as the predicate (V) is for roles.
    """

    def spans(labels: Sequence[str]) -> set[Span]:
        return {span for span in find_spans(labels) if span.kind not in ignore_labels}

    return _count(map(spans, gold), map(spans, predicted))


def _count(gold: Iterable[set[Span]], predicted: Iterable[set[Span]]) -> Counts:
    """Whatever can be right or wrong in an example is a span: a word, a name, a whole text."""
    pairs = list(zip(gold, predicted, strict=True))
    labels = sorted({span.kind for pair in pairs for spans in pair for span in spans})
    number = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(pairs), 3, len(labels)), dtype=np.int64)
    for example, (wanted, found) in enumerate(pairs):
        for row, spans in ((_RIGHT, wanted & found), (_PREDICTED, found), (_GOLD, wanted)):
            for span in spans:
                counts[example, row, number[span.kind]] += 1
    return Counts(tuple(labels), counts)


def _words_alone(labels: Sequence[str]) -> set[Span]:
    return {Span(label, place, place + 1) for place, label in enumerate(labels)}


def _ratio(part: Values, whole: npt.NDArray[Any]) -> Values:
    result: Values = np.zeros_like(part)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


NAME = "confusion.png"
_MOST_LABELS = 24  # in the picture: beyond, nobody can read it
_OTHERS = "others"


def confusion(gold: Iterable[str], predicted: Iterable[str]) -> Counter[tuple[str, str]]:
    """How often each gold label was given each label: (gold, predicted) -> count."""
    return Counter(zip(gold, predicted, strict=True))


def draw_confusion(folder: Path, gold: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """The picture, rare labels together. Returns notes for the user."""
    frequent = {label for label, _ in Counter(gold).most_common(_MOST_LABELS)}

    def shown(label: str) -> str:
        return label if label in frequent else _OTHERS

    return _draw(folder / NAME, confusion(map(shown, gold), map(shown, predicted)))


def _draw(path: Path, counts: Counter[tuple[str, str]]) -> list[str]:
    """Rows are gold labels, each adding up to 1; columns what was predicted."""
    labels = list(dict.fromkeys(label for pair in counts for label in pair))
    figure_class, fonts, notes = load_matplotlib("".join(labels))
    num_gold: Counter[str] = Counter()
    for (gold, _), count in counts.items():
        num_gold[gold] += count
    labels.sort(key=lambda label: (label == _OTHERS, -num_gold[label], label))
    rows = [
        [counts.get((gold, predicted), 0) / max(1, num_gold[gold]) for predicted in labels]
        for gold in labels
    ]
    size = 2.5 + 0.35 * len(labels)
    figure = figure_class(figsize=(size, size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(rows, cmap="Blues", vmin=0, vmax=1)
    places = range(len(labels))
    axes.set(xticks=places, yticks=places, xlabel="predicted", ylabel="gold")
    axes.set_xticklabels(labels, rotation=90)
    axes.set_yticklabels([f"{label} ({num_gold[label]:,})" for label in labels])
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(fonts)
    for y, row in enumerate(rows):
        for x, share in enumerate(row):
            if share >= 0.005:  # what would be written as 0.00 is left blank
                shade = "white" if share > 0.5 else "black"
                axes.text(x, y, f"{share:.2f}", ha="center", va="center", fontsize=6, color=shade)
    with scratch_for(path) as scratch:
        figure.savefig(scratch, dpi=130)
    return notes


Statistics: TypeAlias = npt.NDArray[Any]
# Numbers in hand at once: 32 MB in float64.
_ROOM = 1 << 22
# Differences of equal counts may differ by rounding.
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems by one measure."""

    measure: str
    first: float
    second: float
    low: float
    """The true difference lies between `low` and `high` with 95 % confidence."""
    high: float
    p_value: float
    """How probable a difference at least this large, either way, would be between equals."""
    resamples: int

    @property
    def difference(self) -> float:
        """How much better the second is."""
        return self.second - self.first


def compare(
    first: ExampleScores,
    second: ExampleScores,
    *,
    measure: str,
    resamples: int = 10_000,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
) -> Comparison:
    """Compare two systems' scores of the same examples in the same order.

    `groups` names for each example the sentence it comes from, where several come from one, as
    predicates do: they rise and fall together, so they are drawn together.
    """
    if not len(first) or not first.has_examples_of(second):
        raise InputError(
            f"Two systems can only be compared on the same examples with the same gold labels; "
            f"these have {len(first):,} and {len(second):,} examples, or different labels."
        )
    both = (first, second)
    statistics = [each.statistics(measure) for each in both]
    if groups is not None:
        statistics = [_grouped(one, groups) for one in statistics]
    pairs = list(zip(both, statistics, strict=True))
    values = [each.value(measure) for each in both]
    observed = values[1] - values[0]
    parts = [
        np.diff([each.value_of(_sums(own, draws), measure) for each, own in pairs], axis=0)[0]
        for draws in _draws(len(statistics[0]), resamples, seed)
    ]
    differences = np.concatenate(parts)
    # Between equals the differences would lie around 0 as they now lie around the observed one.
    as_large = np.abs(differences - observed) >= abs(observed) - _TINY
    low, high = np.quantile(differences, [0.025, 0.975])
    return Comparison(
        measure=measure,
        first=values[0],
        second=values[1],
        low=float(low),
        high=float(high),
        # With the observed difference as one of the draws, p is never 0.
        p_value=(1 + int(as_large.sum())) / (1 + resamples),
        resamples=resamples,
    )


def _grouped(statistics: Statistics, groups: Sequence[Hashable]) -> Statistics:
    number: dict[Hashable, int] = {}
    places = [number.setdefault(group, len(number)) for group in groups]
    assert len(places) == len(statistics), (len(places), len(statistics))
    total = np.zeros((len(number), *statistics.shape[1:]), dtype=statistics.dtype)
    np.add.at(total, places, statistics)
    return total


def _draws(num_examples: int, resamples: int, seed: int) -> Iterator[Values]:
    """(R, N) in parts of bounded size: how often each example is in each resample."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _ROOM // num_examples)
    for begin in range(0, resamples, at_once):
        rows = min(at_once, resamples - begin)
        drawn = generator.integers(num_examples, size=(rows, num_examples))
        drawn += np.arange(rows)[:, None] * num_examples
        often = np.bincount(drawn.ravel(), minlength=rows * num_examples)
        yield often.reshape(rows, num_examples).astype(np.float64)


def _sums(statistics: Statistics, draws: Values) -> Values:
    """(N, ...), (R, N) -> (R, ...): the sums of each resample."""
    sums: Values = draws @ statistics.reshape(len(statistics), -1)
    return sums.reshape(-1, *statistics.shape[1:])


class MeanStd(NamedTuple):
    """A measure over seeds."""

    mean: float
    std: float | None
    """Standard deviation of the sample; None where there is a single seed."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanStd":
        """Of one value for each seed."""
        std = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), std)

    def __str__(self) -> str:
        told = "" if self.std is None else f" ± {100 * self.std:.2f}"
        return f"{100 * self.mean:.2f}{told}"


# Ways to deal the seeds that are all looked at: ten against ten are 184,756. Of more, so many.
_WAYS = 200_000
_TINY = 1e-12  # sums of the same values may differ by rounding


class SeedComparison(NamedTuple):
    """Two variants by their seeds: would others have told the same?"""

    difference: float
    """How much better the second is."""
    standard_error: float
    """Of the difference, by the variance of each variant's seeds."""
    p_value: float
    """How probable a difference at least this large, either way, would be if seeds were dealt to
    the two at random: an exact permutation test. With three seeds each it is never under 0.1."""

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> "SeedComparison | None":
        """Of one value for each seed; None where either variant has a single one."""
        if min(len(first), len(second)) < 2:
            return None
        variances = [variance(each) / len(each) for each in (first, second)]
        return cls(
            difference=fmean(second) - fmean(first),
            standard_error=math.sqrt(sum(variances)),
            p_value=_permutation_p(first, second),
        )


def _permutation_p(first: Sequence[float], second: Sequence[float]) -> float:
    values = np.array([*first, *second])
    total, size = float(values.sum()), len(first)

    def distance(sums: float) -> float:
        return abs((total - sums) / len(second) - sums / size)

    observed = distance(float(values[:size].sum()))
    as_large = [distance(float(values[list(own)].sum())) >= observed - _TINY
                for own in _ways(len(values), size)]  # fmt: skip
    return sum(as_large) / len(as_large)


def _ways(number: int, size: int) -> Iterator[Sequence[int]]:
    """All ways to choose so many, or very many of them; what was observed is the first."""
    if math.comb(number, size) <= _WAYS:
        yield from combinations(range(number), size)
        return
    yield range(size)
    random = np.random.default_rng(0)
    for _ in range(_WAYS // 10):
        yield random.permutation(number)[:size].tolist()


AnswerUnit = Literal["words", "characters"]
ANSWER_MEASURES = ("f1", "em")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_HAN = "\u4e00-\u9fff"
_PART = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+")


def exact_match(answer: str, gold: str, unit: AnswerUnit) -> float:
    """1 if both are the same once normalized, else 0."""
    if unit == "words":
        return float(_words(answer) == _words(gold))
    return float(_without_punctuation(answer) == _without_punctuation(gold))


def f1(answer: str, gold: str, unit: AnswerUnit) -> float:
    """The harmonic mean of how much of the answer is right and how much of the gold is there."""
    split = _words if unit == "words" else _characters
    found, wanted = split(answer), split(gold)
    if not found or not wanted:
        return float(found == wanted)
    if unit == "words":
        shared = (Counter(found) & Counter(wanted)).total()
    else:
        shared = _longest_run(found, wanted)
    return 2 * shared / (len(found) + len(wanted))


def _words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _characters(text: str) -> list[str]:
    return _PART.findall(text.lower())


def _without_punctuation(text: str) -> str:
    is_kept = (c for c in text.lower().strip() if unicodedata.category(c)[0] not in "PSZ")
    return "".join(is_kept)


def _longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """How many units the longest run has that occurs in both."""
    longest, before = 0, [0] * (len(other) + 1)
    for unit in one:
        here = [0] * (len(other) + 1)
        for place, candidate in enumerate(other, start=1):
            if unit == candidate:
                here[place] = before[place - 1] + 1
        longest, before = max(longest, *here), here
    return longest


@dataclass(frozen=True, eq=False)
class AnswerScores(MeanScores):
    """Exact match and F1 of N answers."""

    em: Values
    f1: Values
    is_in_text: npt.NDArray[np.bool_]
    """Whether a gold answer stands in its passage; no other can be found."""

    @classmethod
    def of(
        cls,
        answers: Iterable[str],
        gold: Sequence[Sequence[str]],
        unit: AnswerUnit,
        *,
        in_text: Any,
    ) -> "AnswerScores":
        """Against the gold answers of each question, of which the best counts."""
        pairs = list(zip(answers, gold, strict=True))
        return cls(
            np.array(
                [max((exact_match(a, g, unit) for g in golds), default=0) for a, golds in pairs]
            ),
            np.array([max((f1(a, g, unit) for g in golds), default=0) for a, golds in pairs]),
            np.array(in_text, np.bool_),
        )

    def each(self, measure: str) -> Values:
        """Of each answer."""
        return self.em if measure == "em" else self.f1

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Both measures, and how many questions no span can answer."""
        missing = int((~self.is_in_text).sum())
        row = {name: self.value(name) for name in ANSWER_MEASURES}
        return {"answers": [{**row, "questions": len(self), "not in the text": missing}]}


Mention: TypeAlias = tuple[int, int]
"""Where it begins, and the word after it, counted over the document."""
Clusters: TypeAlias = Sequence[Sequence[Mention]]
CLUSTER_MEASURES = ("conll-f1", "muc", "b-cubed", "ceaf-e", "mention-f1")
"""conll-f1: the mean of the F1 of the next three. muc (Vilain et al. 1995): links. b-cubed (Bagga
and Baldwin 1998): mentions, each by its cluster. ceaf-e (Luo 2005, φ4): clusters, each paired with
at most one of the other side. mention-f1: mentions, whatever their cluster."""
_AVERAGED = 3  # muc, b-cubed and ceaf-e


class Recall(NamedTuple):
    """How much of one side is on the other; with the sides exchanged, precision."""

    found: float
    of: float


@dataclass(frozen=True, eq=False)
class ClusterScores(ExampleScores):
    """Of N documents."""

    sums: npt.NDArray[np.float64]
    """(N, 4, 2, 2): measures but the first; recall and precision; found, and of how many."""

    def statistics(self, measure: str) -> npt.NDArray[Any]:  # noqa: ARG002
        """(N, 4, 2, 2) for every measure."""
        return self.sums

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, 4, 2, 2) -> (R,)"""
        f1 = _f1(_shares(sums))  # (R, 4)
        number = CLUSTER_MEASURES.index(measure)
        found: Values = f1[:, number - 1] if number else f1[:, :_AVERAGED].mean(axis=1)
        return found

    def has_examples_of(self, other: "ClusterScores") -> bool:
        """Whether each document has as many gold mentions."""
        own, its = (each.sums[:, -1, 0, 1] for each in (self, other))
        return np.array_equal(own, its)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Recall, precision and F1 of each measure."""
        shares = _shares(self.sums.sum(axis=0)[None])[0]
        rows = [
            {"measure": name, "recall": float(r), "precision": float(p), "f1": float(f1)}
            for name, (r, p), f1 in zip(CLUSTER_MEASURES[1:], shares, _f1(shares), strict=True)
        ]
        return {"by_measure": rows}


def score_clusters(gold: Sequence[Clusters], predicted: Sequence[Clusters]) -> ClusterScores:
    """Every document by itself."""
    measures: tuple[Callable[[Clusters, Clusters], Recall], ...] = (muc, b_cubed, ceaf_e, mentions)
    sums = [
        [[measure(key, response), measure(response, key)] for measure in measures]
        for key, response in zip(gold, predicted, strict=True)
    ]
    return ClusterScores(np.array(sums, np.float64).reshape(-1, len(measures), 2, 2))


def muc(key: Clusters, response: Clusters) -> Recall:
    """Links that hold each cluster together, less those that the response lacks."""
    cluster_of = _cluster_of(response)
    found = 0
    for cluster in key:
        parts = {cluster_of.get(mention, mention) for mention in cluster}  # a missing one is alone
        found += len(cluster) - len(parts)
    return Recall(found, sum(len(cluster) - 1 for cluster in key))


def b_cubed(key: Clusters, response: Clusters) -> Recall:
    """For each mention the share of its cluster that is with it in the response."""
    cluster_of = _cluster_of(response)
    found = 0.0
    for cluster in key:
        parts = Counter(cluster_of[mention] for mention in cluster if mention in cluster_of)
        found += sum(number * number for number in parts.values()) / len(cluster)
    return Recall(found, sum(map(len, key)))


def ceaf_e(key: Clusters, response: Clusters) -> Recall:
    """How alike clusters are that are paired so as to be most alike, each with at most one."""
    alike = np.zeros((len(key), len(response)))
    cluster_of = _cluster_of(response)
    for row, cluster in enumerate(key):
        shared = Counter(cluster_of[mention] for mention in cluster if mention in cluster_of)
        for column, number in shared.items():
            alike[row, column] = 2 * number / (len(cluster) + len(response[column]))
    rows, columns = load_assignment()(alike, maximize=True)
    return Recall(float(alike[rows, columns].sum()), len(key))


def mentions(key: Clusters, response: Clusters) -> Recall:
    """Mentions of both sides."""
    gold = {mention for cluster in key for mention in cluster}
    return Recall(len(gold & _cluster_of(response).keys()), len(gold))


def load_assignment() -> Any:
    """scipy's solution of the assignment problem; a MissingExtraError without scipy."""
    with extra_needed_for("Evaluating coreference"):
        from scipy.optimize import linear_sum_assignment
    return linear_sum_assignment


def _cluster_of(clusters: Clusters) -> dict[Mention, int]:
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


def _shares(sums: npt.NDArray[Any]) -> Values:
    """(..., 2) -> (...): what was found of how many; of none, 0."""
    found, of = sums[..., 0], sums[..., 1]
    shares: Values = np.divide(found, of, out=np.zeros_like(found), where=of > 0)
    return shares


def _f1(shares: Values) -> Values:
    """(..., 2) -> (...)"""
    recall, precision = shares[..., 0], shares[..., 1]
    both = recall + precision
    f1: Values = np.divide(2 * recall * precision, both, out=np.zeros_like(both), where=both > 0)
    return f1


TEXT_MEASURES = ("bleu", "chrf")
"""bleu: n-grams of up to four words (Papineni et al. 2002). chrf: n-grams of up to six characters,
recall counting twice as much (Popović 2015)."""
_WORD_ORDER, _CHAR_ORDER, _BETA = 4, 6, 2
Tokenize = Literal["zh", "none"]
"""zh: Chinese characters are words. none: what stands between spaces is."""


@dataclass(frozen=True, eq=False)
class TextScores(ExampleScores):
    """Of N texts."""

    words: npt.NDArray[np.int64]
    """(N, 10): for n-grams of 1 to 4 words how many are right, then how many there are; the lengths
    of prediction and gold."""
    characters: npt.NDArray[np.int64]
    """(N, 6, 3): n-grams of 1 to 6 characters of the prediction, of the gold, and of both."""

    def statistics(self, measure: str) -> npt.NDArray[Any]:
        """(N, 10), or (N, 6, 3)"""
        return self.words if measure == "bleu" else self.characters

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, 10) or (R, 6, 3) -> (R,)"""
        return _bleu(sums) if measure == "bleu" else _chrf(sums)

    def has_examples_of(self, other: "TextScores") -> bool:
        """Whether each gold text is as long."""
        return np.array_equal(self.words[:, -1], other.words[:, -1])

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Both measures, and how long predictions are, as a share of the gold."""
        predicted, gold = self.words[:, -2:].sum(axis=0).tolist()
        row = {name: self.value(name) for name in TEXT_MEASURES}
        return {"by_measure": [{**row, "length": predicted / max(1, gold)}]}


def score_texts(gold: Sequence[str], predicted: Sequence[str], tokenize: Tokenize) -> TextScores:
    """Every text by itself."""
    # What is told of a single sentence is not its score, which would need `effective_order`, but
    # its n-grams, which do not depend on it.
    bleu = load_bleu()(tokenize=tokenize, effective_order=True)
    pairs = list(zip(gold, predicted, strict=True))
    found = [bleu.sentence_score(text, [wanted]) for wanted, text in pairs]
    words = [[*each.counts, *each.totals, each.sys_len, each.ref_len] for each in found]
    characters = [_letters_in(wanted, text) for wanted, text in pairs]
    return TextScores(
        np.array(words, np.int64).reshape(-1, 2 * _WORD_ORDER + 2),
        np.array(characters, np.int64).reshape(-1, _CHAR_ORDER, 3),
    )


def load_bleu() -> Any:
    """sacrebleu's class; a MissingExtraError without it."""
    with extra_needed_for("Evaluating generated texts"):
        from sacrebleu.metrics.bleu import BLEU
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it warns of texts that are words
    return BLEU


def _letters_in(gold: str, predicted: str) -> list[tuple[int, int, int]]:
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    pairs = zip(
        extract_all_char_ngrams(predicted, _CHAR_ORDER),
        extract_all_char_ngrams(gold, _CHAR_ORDER),
        strict=True,
    )
    # As sacrebleu does, n-grams that the gold is too short for are not held against a prediction.
    return [
        (own.total() if wanted else 0, wanted.total(), (own & wanted).total())
        for own, wanted in pairs
    ]


def _bleu(sums: npt.NDArray[Any]) -> Values:
    compute = load_bleu().compute_bleu
    found = []
    for row in sums.astype(np.int64).tolist():
        right, total = row[:_WORD_ORDER], row[_WORD_ORDER : 2 * _WORD_ORDER]
        score = compute(right, total, sys_len=row[-2], ref_len=row[-1], smooth_method="exp").score
        found.append(score / 100)
    return np.array(found)


def _chrf(sums: npt.NDArray[Any]) -> Values:
    """(R, 6, 3) -> (R,): means of precision and recall over the orders that both sides have."""
    predicted, gold, both = np.moveaxis(sums.astype(np.float64), -1, 0)  # (R, 6)
    counts = (predicted > 0) & (gold > 0)
    orders = np.maximum(1, counts.sum(axis=-1))
    zeros = np.zeros_like(both)
    precision = np.divide(both, predicted, out=zeros.copy(), where=counts).sum(axis=-1) / orders
    recall = np.divide(both, gold, out=zeros.copy(), where=counts).sum(axis=-1) / orders
    factor = _BETA**2
    below = factor * precision + recall
    value: Values = np.divide(
        (1 + factor) * precision * recall, below, out=np.zeros_like(below), where=below > 0
    )
    return value
