"""How good predictions are, from numbers kept for every example.

    in    gold labels and predictions: a label per text, labels per word, or spans
    out   `Counts`: per example and label how often it was right, predicted, and gold;
          from its sums every measure, and (significance.py) how sure we are of it

Counts are one kind of `ExampleScores`; a family without labels has its own. Counts per example take
N x 3 x K numbers; labels that never occur take none.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

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
