"""How right clusters of mentions are: MUC, B³, CEAF-φ4, and their mean, as at CoNLL-2012.

    in    gold and predicted clusters of each document; a mention is where it begins and ends
    out   `ClusterScores`: numerators and denominators of recall and precision, document by document

A measure over several documents is made from the sums, as the scorer of the shared task does
(Pradhan et al. 2014); a document is one example of a resample. Mentions that are in no cluster of
the other side count against precision or recall; clusters of one mention are clusters.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.errors import MissingExtraError
from polyseme.tasks.measures import ExampleScores, Values

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

    def __len__(self) -> int:
        return len(self.sums)

    def statistics(self, measure: str) -> npt.NDArray[Any]:  # noqa: ARG002
        """(N, 4, 2, 2) for every measure."""
        return self.sums

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, 4, 2, 2) -> (R,)"""
        f1 = _f1(_shares(sums))  # (R, 4)
        number = CLUSTER_MEASURES.index(measure)
        found: Values = f1[:, number - 1] if number else f1[:, :_AVERAGED].mean(axis=1)
        return found

    def concat(self, others: "Sequence[ClusterScores]") -> "ClusterScores":
        """The documents of all."""
        return ClusterScores(np.concatenate([each.sums for each in (self, *others)]))

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
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError as error:
        raise MissingExtraError.of(
            "scipy", extra="senses", purpose="Evaluating coreference"
        ) from error
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
