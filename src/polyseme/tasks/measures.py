"""How good predictions are, from counts kept for every example.

    in    right answers and predictions: a label per text, labels per word, or spans
    out   a `Tally`: per example and label how often it was right, predicted, and due;
          from its sums every measure, and (significance.py) how sure we are of it

Counts per example take N x 3 x K numbers; labels that never occur take none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.tasks.spans import Span, find_spans

Measure = Literal["accuracy", "precision", "recall", "f1", "macro-f1"]
"""accuracy: right answers among all due. precision, recall, f1: over all labels together, as
customary for spans. macro-f1: the mean of the labels' own, rare ones counting like frequent ones;
labels neither due nor predicted are left out."""
Counts: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.float64]
_RIGHT, _PREDICTED, _DUE = range(3)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one system on N examples and K labels."""

    labels: tuple[str, ...]
    counts: Counts
    """(N, 3, K): right, predicted, due."""

    def value(self, measure: Measure) -> float:
        """One measure over all examples."""
        return float(value_of(self.counts.sum(axis=0), measure))

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
                due=int(sums[_DUE, k]),
                predicted=int(sums[_PREDICTED, k]),
            )
            scores.append(score)
        return sorted(scores, key=lambda score: (-score.due, score.label))


class LabelScore(NamedTuple):
    """One row of the table of labels."""

    label: str
    precision: float
    recall: float
    f1: float
    due: int
    predicted: int


def value_of(totals: npt.NDArray[Any], measure: Measure) -> Values:
    """(..., 3, K) -> (...): a measure from sums of counts. What divides by nothing is 0."""
    sums = totals.astype(np.float64)
    if measure != "macro-f1":
        sums = sums.sum(axis=-1, keepdims=True)
    right, predicted, due = np.moveaxis(sums, -2, 0)  # (..., K or 1)
    match measure:
        case "accuracy" | "recall":
            return _ratio(right, due)[..., 0]
        case "precision":
            return _ratio(right, predicted)[..., 0]
        case "f1":
            return _ratio(2 * right, predicted + due)[..., 0]
        case "macro-f1":
            occurs = (predicted + due > 0).sum(axis=-1)
            return _ratio(_ratio(2 * right, predicted + due).sum(axis=-1), occurs)


def tally_labels(due: Sequence[str], predicted: Sequence[str]) -> Tally:
    """Texts or pairs with one label each."""
    return tally_words([[label] for label in due], [[label] for label in predicted])


def tally_words(due: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Tally:
    """Sentences with a label for every word, each word counting by itself."""
    return _tally(map(_words_alone, due), map(_words_alone, predicted))


def tally_spans(
    due: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    *,
    leave_out: Collection[str] = (),
) -> Tally:
    """Sentences with labels of any span scheme; right is a span with both ends and its kind.

    Kinds to leave out are those that are given and not found, as the predicate (V) is for roles.
    """

    def spans(labels: Sequence[str]) -> set[Span]:
        return {span for span in find_spans(labels) if span.kind not in leave_out}

    return _tally(map(spans, due), map(spans, predicted))


def combine(tallies: Sequence[Tally]) -> Tally:
    """Several tallies as one: the examples of all, one after the other."""
    labels = sorted({label for tally in tallies for label in tally.labels})
    parts = []
    for tally in tallies:
        counts = np.zeros((len(tally.counts), 3, len(labels)), dtype=np.int64)
        counts[:, :, [labels.index(label) for label in tally.labels]] = tally.counts
        parts.append(counts)
    return Tally(tuple(labels), np.concatenate(parts))


def confusion(due: Iterable[str], predicted: Iterable[str]) -> Counter[tuple[str, str]]:
    """How often each right label was given each label: (due, predicted) -> count."""
    return Counter(zip(due, predicted, strict=True))


def _tally(due: Iterable[set[Span]], predicted: Iterable[set[Span]]) -> Tally:
    """Whatever can be right or wrong in an example is a span: a word, a name, a whole text."""
    pairs = list(zip(due, predicted, strict=True))
    labels = sorted({span.kind for pair in pairs for spans in pair for span in spans})
    number = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(pairs), 3, len(labels)), dtype=np.int64)
    for example, (wanted, given) in enumerate(pairs):
        for row, spans in ((_RIGHT, wanted & given), (_PREDICTED, given), (_DUE, wanted)):
            for span in spans:
                counts[example, row, number[span.kind]] += 1
    return Tally(tuple(labels), counts)


def _words_alone(labels: Sequence[str]) -> set[Span]:
    return {Span(label, place, place + 1) for place, label in enumerate(labels)}


def _ratio(part: Values, whole: npt.NDArray[Any]) -> Values:
    result: Values = np.zeros_like(part)
    np.divide(part, whole, out=result, where=whole > 0)
    return result
