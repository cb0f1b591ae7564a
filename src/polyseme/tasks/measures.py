"""How good predictions are, from numbers kept for every example; and is one system better?

    in    gold labels and predictions: a label per text, labels per word, or spans
    out   `Counts`: per example and label how often it was right, predicted, and gold;
          from its sums every measure, which labels were taken for which, and how sure we are

Counts are one kind of `ExampleScores`; a family without labels has its own. Counts per example take
N x 3 x K numbers; labels that never occur take none.

Two systems are compared by the paired bootstrap: examples are drawn again with replacement, the
same for both; how much their difference varies then is how much it would vary between test sets
(Efron and Tibshirani 1993, chapter 16; Koehn 2004). Only sums over examples are needed, so 10,000
draws take a second.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import load_matplotlib
from polyseme.errors import InputError
from polyseme.storage.files import scratch_for
from polyseme.tasks.spans import Span, find_spans

LABEL_MEASURES = ("accuracy", "precision", "recall", "f1", "macro-f1")
"""accuracy: right labels among all gold ones. precision, recall, f1: over all labels together, as
customary for spans. macro-f1: the mean of the labels' own, rare ones counting like frequent ones;
labels neither gold nor predicted are left out."""
CountArray: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.float64]
_RIGHT, _PREDICTED, _GOLD = range(3)


class ExampleScores(ABC):
    """How right one system is on N examples, in numbers of each example that add up.

    Every measure is made from their sums. So it can be made for any resample of the examples, too,
    which is what the bootstrap needs. A mean has the sums of values and of ones; F1 those of
    right, predicted and gold; BLEU those of n-grams found and given; a correlation those of
    products.
    """

    @abstractmethod
    def statistics(self, measure: str) -> npt.NDArray[Any]:
        """(N, ...): what each example adds to the sums that a measure is made from."""

    @abstractmethod
    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, ...) -> (R,): a measure from each of R sums. What divides by nothing is 0."""

    @abstractmethod
    def concat(self, others: Sequence[Self]) -> Self:
        """These examples, and those of others after them."""

    def has_examples_of(self, other: Self) -> bool:
        """Whether both were measured on the same examples, as far as can be told."""
        return len(self) == len(other)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """What is told beside the measure, rows by the name of their table: `by_label`. Numbers
        that are shares are floats."""
        return {}

    @abstractmethod
    def __len__(self) -> int: ...

    def value(self, measure: str) -> float:
        """One measure over all examples."""
        return float(self.value_of(self.statistics(measure).sum(axis=0)[None], measure)[0])


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
    _check_same(first, second)
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


def _check_same(first: ExampleScores, second: ExampleScores) -> None:
    if not len(first) or not first.has_examples_of(second):
        raise InputError(
            f"Two systems can only be compared on the same examples; these saw {len(first):,} and "
            f"{len(second):,}, or such as have other gold labels."
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
