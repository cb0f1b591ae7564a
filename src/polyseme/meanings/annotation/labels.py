"""Learning from a user's own labels: a few uses are labelled by hand, the others follow.

    in    features of all uses, (N, D), and the labels of some of them, by number
    out   a label and a confidence for every use, and which uses to look at next

With few labels the nearest mean of a label's uses is safest: a regression is easily led astray by
how many there are of each. With five or more of each, logistic regression finds what the senses
differ in, leaves the rest, as topic, aside, and confidences can be calibrated.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError, MissingExtraError

Values: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[np.int64]
Method: TypeAlias = Literal["one label", "centroid", "logistic regression"]

# Of each label. With fewer, and of one label more than of another, a regression was right up to
# 0.10 less often than means, and a scale fitted to them worse than none; with five it was right
# 0.03 to 0.06 more often, with twelve up to 0.17 (made-up uses of 2 or 3 senses, 256 dimensions).
ENOUGH = 5
_C = 100.0  # of the regression: features have unit length, so this is no weak penalty
_SHARPNESS = 10.0  # of the nearest mean: cosines differ by tenths
_SCALES = np.geomspace(1 / 4, 16, 37)
_FOLDS = 10


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LearnedLabels:
    """A label for every use."""

    labels: tuple[str, ...]
    """For each use the user's own label, or the most probable one."""
    confidence: Values
    """(N,): how probable each label is; 1 where it is the user's own.

    0, where all labels are the same: then nothing is known of what else there may be.
    """
    given: dict[int, str]
    """The user's own."""
    method: Method
    _uncertainty: Values
    _features: Values

    @property
    def is_calibrated(self) -> bool:
        """Whether confidences were fitted to how often labels that are left out in turn are right.

        Those of means tell more from less certain, and are no probabilities.
        """
        return self.method == "logistic regression"

    def __repr__(self) -> str:
        calibrated = "calibrated" if self.is_calibrated else "not calibrated"
        return summary("LearnedLabels", *self._facts().values(), calibrated)

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
            "method": self.method,
            "is_calibrated": self.is_calibrated,
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
            "method": self.method,
        }


def learn_labels(features: npt.NDArray[Any], labels: Mapping[int, str]) -> LearnedLabels:
    """Label every use as the user's own labels suggest. `labels`: by the number of the use."""
    _check(features, labels)
    given = dict(sorted(labels.items()))
    names = sorted(set(given.values()))
    # From the mean of all uses, labelled or not: what they share tells no senses apart.
    rows = _unit_length(features - np.mean(features, axis=0, dtype=np.float64))
    own = np.array([names.index(label) for label in given.values()], np.int64)
    method = _choose_method(own)
    probabilities = _probabilities(method, rows[list(given)], own, rows)
    found = [names[number] for number in probabilities.argmax(axis=1)]
    confidence = probabilities.max(axis=1) if len(names) > 1 else np.zeros(len(rows))
    for number, label in given.items():
        found[number], confidence[number] = label, 1.0
    return LearnedLabels(
        labels=tuple(found),
        confidence=confidence,
        given=given,
        method=method,
        _uncertainty=_uncertainty(probabilities),
        _features=rows,
    )


def labels_when_left_out(features: npt.NDArray[Any], labels: Mapping[int, str]) -> dict[int, str]:
    """What each labelled use would be called, had it and up to a tenth of the others no label.

    "" where that leaves no label at all. Tells how far labels can be learned from one another.
    """
    _check(features, labels)
    rows = _unit_length(features - np.mean(features, axis=0, dtype=np.float64))
    numbers = np.array(sorted(labels), np.int64)
    names = np.array([labels[number] for number in numbers.tolist()])
    found = np.full(len(numbers), "", dtype=names.dtype)
    for out in _folds(np.unique(names, return_inverse=True)[1]):
        left, own = np.unique(names[~out], return_inverse=True)
        if len(left):
            method = _choose_method(own)
            scores = _scores(method, rows[numbers[~out]], own, rows[numbers[out]])
            found[out] = left[scores.argmax(axis=1)]
    return dict(zip(numbers.tolist(), found.tolist(), strict=True))


def _choose_method(own: Numbers) -> Method:
    counts = np.bincount(own)
    if len(counts) == 1:
        return "one label"
    return "logistic regression" if counts.min() >= ENOUGH else "centroid"


def _probabilities(method: Method, known: Values, own: Numbers, rows: Values) -> Values:
    """(N, K), of each label for each row."""
    scale = _scale(known, own) if method == "logistic regression" else 1.0
    return _softmax(scale * _scores(method, known, own, rows))


def _scores(method: Method, known: Values, own: Numbers, rows: Values) -> Values:
    """(N, K): the more, the more probable."""
    match method:
        case "one label":
            return np.ones((len(rows), 1))
        case "centroid":
            return _centroids(known, own, rows)
        case "logistic regression":
            return _regression(known, own, rows)


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


def _unit_length(features: Values) -> Values:
    """A row of zeros stays one."""
    lengths = np.linalg.norm(features, axis=-1, keepdims=True)
    rows: Values = features / np.where(lengths > 0, lengths, 1.0)
    return rows


def _centroids(known: Values, own: Numbers, rows: Values) -> Values:
    """(m, K): cosines with the mean of each label's uses."""
    means = np.stack([known[own == number].mean(axis=0) for number in range(own.max() + 1)])
    return _SHARPNESS * rows @ _unit_length(means).T


def _regression(known: Values, own: Numbers, rows: Values) -> Values:
    """(m, K): logits. All labels weigh the same, however many uses have them."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        purpose = f"Learning from {ENOUGH} or more labels of each kind"
        raise MissingExtraError.of("scikit-learn", extra="senses", purpose=purpose) from error
    model = LogisticRegression(C=_C, class_weight="balanced", max_iter=1000).fit(known, own)
    logits: Values = model.decision_function(rows)
    return logits if logits.ndim == 2 else np.stack([np.zeros(len(rows)), logits], axis=1)


def _scale(known: Values, own: Numbers) -> float:
    """What to multiply scores by, so that labels left out in turn are as probable as they can be.

    Known as temperature scaling (Guo et al. 2017). A few labels can be all right by chance, so
    scales far from 1 are taken for less likely.
    """
    scores = np.zeros((len(own), own.max() + 1))
    for out in _folds(own):
        scores[out] = _regression(known[~out], own[~out], known[out])
    rows = np.arange(len(own))
    costs = [
        -np.log(_softmax(scale * scores)[rows, own]).sum() + np.log(scale) ** 2 for scale in _SCALES
    ]
    return float(_SCALES[int(np.argmin(costs))])


def _folds(own: Numbers) -> Iterator[npt.NDArray[np.bool_]]:
    """Which to leave out, in turn: of every label about the same share, never all of one."""
    place = np.zeros(len(own), np.int64)
    for number in range(own.max() + 1):
        place[own == number] = np.arange((own == number).sum())
    for fold in range(_FOLDS):
        if (out := place % _FOLDS == fold).any():
            yield out


def _softmax(scores: Values) -> Values:
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    found: Values = shares / shares.sum(axis=1, keepdims=True)
    return found


def _uncertainty(probabilities: Values) -> Values:
    """(N, K) -> (N,): 1 less the lead of the most probable label before the next."""
    if probabilities.shape[1] == 1:
        return np.ones(len(probabilities))
    ordered = np.sort(probabilities, axis=1)
    found: Values = 1.0 - (ordered[:, -1] - ordered[:, -2])
    return found
