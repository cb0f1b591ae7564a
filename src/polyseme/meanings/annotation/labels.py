"""Learning from a user's own labels: a few uses are labelled by hand, the others follow.

    in    features of all uses, (N, D), and the labels of some of them, by number
    out   which uses to label first; a label and a confidence for every use, and which to look at
          next

A logistic regression, in which all labels weigh the same, however many uses have them. It is given
features in which near uses have been drawn together (`draw_together`), labelled or not: so what the
few labelled ones have by chance counts less. Measured on CoarseWSD-20 and on novels (see
docs/experiments.md).
"""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError, extra_needed_for
from polyseme.meanings.features.use_features import Floats
from polyseme.meanings.groups.grouping import centred, unit_length

Values: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[np.int64]

FEW_LABELS = 12
"""With fewer, confidences are too high."""
_C = 30.0
"""Of the regression. Of 1, 3, 10, 30 the one whose probabilities are right most nearly as often as
they say: within 0.06 on average from twelve labels on, on half of the words measured."""
_NEIGHBOURS = 10
_FOLDS = 10
_CLUSTERED = 1_000  # uses that clusters are made of
_ROWS = 512  # uses whose neighbours are looked for at once


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedLabels:
    """A label for every use."""

    labels: tuple[str, ...]
    """For each use the user's own label, or the most probable one."""
    confidence: Values
    """(N,): how probable each label is; 1 where it is the user's own.

    With fewer than a dozen labels, too high: they know little of what else there is. 0, where all
    labels are the same: then nothing is known of it.
    """
    given: dict[int, str]
    """The user's own."""
    _uncertainty: Values
    _features: Values

    def __repr__(self) -> str:
        return summary("LearnedLabels", *self._facts().values())

    def _repr_html_(self) -> str:
        of_user, of_all = Counter(self.given.values()), Counter(self.labels)
        rows = [(label, of_user[label], of_all[label]) for label in sorted(of_all)]
        table = html_table("Labels", rows, ("label", "by hand", "uses"))
        return html_table("Learned labels", self._facts().items()) + table

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "labels": list(self.labels),
            "confidence": [float(value) for value in self.confidence],
            "given": {str(number): label for number, label in self.given.items()},
        }

    def next_to_label(
        self, k: int, *, how: Literal["uncertain", "random"] = "uncertain", seed: int = 0
    ) -> list[int]:
        """Up to k uses without a label of the user's, by number, the most useful first.

        `uncertain`: those between two labels, unlike each other and all that are labelled.
        `random`: a sample. Only of one can be told how often learned labels are right, or how
        frequent a sense is.
        """
        open_ones = np.array([n for n in range(len(self.labels)) if n not in self.given], np.int64)
        if how == "random":
            return [int(n) for n in np.random.default_rng(seed).permutation(open_ones)[:k]]
        labelled = self._features[list(self.given)]
        near = (self._features[open_ones] @ labelled.T).max(axis=1)  # to the nearest labelled
        chosen: list[int] = []
        while len(chosen) < min(k, len(open_ones)):
            worth = self._uncertainty[open_ones] * np.maximum(1.0 - near, 0.0)
            worth[np.isin(open_ones, chosen)] = -1.0
            best = int(open_ones[int(worth.argmax())])
            chosen.append(best)
            near = np.maximum(near, self._features[open_ones] @ self._features[best])
        return chosen

    def _facts(self) -> dict[str, str]:
        return {
            "uses": counted(len(self.labels), "use"),
            "by hand": f"{len(self.given):,} labelled by hand",
            "labels": counted(len(set(self.given.values())), "label"),
        }


def draw_together(features: Floats) -> Floats:
    """(N, D) of length one: each use between itself and the mean of those nearest to it.

    One step of a graph convolution (SGC; Wu et al., 2019). What all uses share is taken away.
    """
    rows = unit_length(features)
    k = min(_NEIGHBOURS, len(rows) - 1)
    if k < 1:
        return rows
    means = np.empty_like(rows)
    for begin in range(0, len(rows), _ROWS):
        similar = rows[begin : begin + _ROWS] @ rows.T
        own = np.arange(len(similar))
        similar[own, begin + own] = -np.inf
        nearest = np.argpartition(-similar, k - 1, axis=1)[:, :k]
        means[begin : begin + _ROWS] = rows[nearest].mean(axis=1)
    return centred(unit_length(rows + unit_length(means)))


def first_to_label(features: Floats, k: int, *, seed: int = 1) -> list[int]:
    """Up to k uses that show what there is, by number, those of the largest part first.

    Of each of k clusters (k-means) the use nearest to the middle. Six lines chosen so had 2.8 of
    the senses of a word of the novels, six of those that are typical of groups 1.7.
    """
    with extra_needed_for("Choosing lines to label"):
        from sklearn.cluster import KMeans

    some = features[np.linspace(0, len(features) - 1, min(len(features), _CLUSTERED)).astype(int)]
    rows = np.unique(some, axis=0)
    k = min(k, len(rows))
    if not k:
        return []
    clusters = KMeans(k, n_init=3, random_state=seed).fit(rows)
    apart = clusters.transform(features)
    order = np.argsort(-np.bincount(clusters.labels_, minlength=k), kind="stable")
    return list(dict.fromkeys(int(apart[:, cluster].argmin()) for cluster in order))


def learn_labels(features: npt.NDArray[Any], labels: Mapping[int, str]) -> LearnedLabels:
    """Label every use as the user's own labels suggest. `labels`: by the number of the use."""
    _check(features, labels)
    given = dict(sorted(labels.items()))
    names = sorted(set(given.values()))
    rows = _rows(features)
    probabilities = _probabilities(rows[list(given)], list(given.values()), rows)
    found = [names[number] for number in probabilities.argmax(axis=1)]
    confidence = probabilities.max(axis=1) if len(names) > 1 else np.zeros(len(rows))
    for number, label in given.items():
        found[number], confidence[number] = label, 1.0
    return LearnedLabels(
        labels=tuple(found),
        confidence=confidence,
        given=given,
        _uncertainty=_uncertainty(probabilities),
        _features=rows,
    )


def labels_when_left_out(features: npt.NDArray[Any], labels: Mapping[int, str]) -> dict[int, str]:
    """What each labelled use would be called, had it and up to a tenth of the others no label.

    "" where that leaves no label at all. Tells how far labels can be learned from one another.
    """
    from sklearn.model_selection import KFold

    _check(features, labels)
    given = dict(sorted(labels.items()))
    if len(given) == 1:
        return dict.fromkeys(given, "")
    rows, names = _rows(features)[list(given)], np.array(list(given.values()), dtype=object)
    found = names.copy()
    for known, out in KFold(min(_FOLDS, len(given)), shuffle=True, random_state=1).split(rows):
        probabilities = _probabilities(rows[known], names[known].tolist(), rows[out])
        found[out] = np.unique(names[known])[probabilities.argmax(axis=1)]
    return dict(zip(given, found.tolist(), strict=True))


def _check(features: npt.NDArray[Any], labels: Mapping[int, str]) -> None:
    if features.ndim != 2 or not np.isfinite(features).all():
        raise InputError(f"Features are finite numbers, (uses, D), not {features.shape}.")
    if not labels:
        raise InputError("No use is labelled. Label one or more, of two senses if you can.")
    if unknown := sorted(number for number in labels if not 0 <= number < len(features)):
        some = ", ".join(map(str, unknown[:5]))
        raise InputError(
            f"{len(unknown):,} labels are of uses that are not there, as {some}: there are "
            f"{len(features):,}, counted from 0. Were these labels given to other uses?"
        )


def _rows(features: npt.NDArray[Any]) -> Values:
    """From the mean of all uses, labelled or not: what they share tells no senses apart."""
    return centred(features).astype(np.float64)


def _probabilities(known: Values, own: Sequence[str], rows: Values) -> Values:
    """(m, K), of each label, in order of the alphabet, for each row."""
    if len(set(own)) == 1:
        return np.ones((len(rows), 1))
    with extra_needed_for("Learning from labels"):
        from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_C, class_weight="balanced", max_iter=1000)
    with warnings.catch_warnings():
        # Nearly every labelled use may have a label of its own: so be it.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        model.fit(known, list(own))
    found: Values = model.predict_proba(rows)
    return found


def _uncertainty(probabilities: Values) -> Values:
    """(N, K) -> (N,): 1 less the lead of the most probable label before the next."""
    if probabilities.shape[1] == 1:
        return np.ones(len(probabilities))
    ordered = np.sort(probabilities, axis=1)
    found: Values = 1.0 - (ordered[:, -1] - ordered[:, -2])
    return found
