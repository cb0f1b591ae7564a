"""Two uses in, whether they mean the same out.

    in   two marked sentences; perhaps pairs that people judged
    out  `SameMeaning`: how alike the uses are by each view, and a probability if pairs were given

How alike is alike enough no model knows: it depends on how finely people tell senses apart. So
without judged pairs there is a similarity and no verdict. With them, a logistic regression on the
views learns their line, and says how often it is right about pairs it has not seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.display import html_table, sentence, summary
from polyseme.errors import InputError
from polyseme.meanings.annotation.judged_pairs import JudgedPair
from polyseme.meanings.concordance.marked_use import MarkedUse, read_marked
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.similarity import VIEWS, Centre, pair_similarities

MIN_PAIRS = 20
"""Pairs of which a line can be learned: ten of each kind, and more are better."""
_FOLDS = 5
_RIDGE = 1.0  # pull of the weights towards zero: few pairs must not make it sure of itself
_STEPS = 50
_AT_ONCE = 1_000  # pairs whose features are in memory together
_Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SameMeaning:
    """How alike two uses are."""

    first: MarkedUse
    second: MarkedUse
    views: dict[str, float]
    """The cosine by each view: context, bag, substitutes."""
    probability: float | None = None
    """That people would say they mean the same; None without judged pairs."""
    accuracy: float | None = None
    """Share of the judged pairs that were told right when they were not learned from."""
    majority: float | None = None
    """What always giving the more frequent answer would reach."""
    num_pairs: int = 0

    @property
    def similarity(self) -> float:
        """The mean of the views: 1 is the same."""
        return sum(self.views.values()) / len(self.views)

    @property
    def is_same(self) -> bool | None:
        """The likelier answer; None without judged pairs."""
        return None if self.probability is None else self.probability >= 0.5

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rounded = {name: round(value, 4) for name, value in self.views.items()}
        return {
            "similarity": round(self.similarity, 4),
            **rounded,
            "probability": None if self.probability is None else round(self.probability, 4),
            "same": self.is_same,
            "accuracy": None if self.accuracy is None else round(self.accuracy, 4),
            "pairs": self.num_pairs,
        }

    def __repr__(self) -> str:
        told = "" if self.probability is None else f"the same with p = {self.probability:.2f}"
        uses = (f"{use.form!r} in {sentence(use.words)!r}" for use in (self.first, self.second))
        return summary("SameMeaning", *uses, f"similarity {self.similarity:.2f}", told)

    def _repr_html_(self) -> str:
        return html_table(repr(self), list(self.views.items()), ("view", "cosine"))


@dataclass(frozen=True, eq=False)
class SameClassifier:
    """What was learned from judged pairs."""

    centre: Centre
    weights: _Values
    """Of each view, and last the constant."""
    accuracy: float
    majority: float
    num_pairs: int

    def probability(self, views: Floats) -> float:
        """That a pair with these views is judged the same."""
        return float(_probabilities(views.reshape(1, -1).astype(np.float64), self.weights)[0])


def learn_same(
    describer: UseDescriber,
    pairs: Sequence[JudgedPair],
    on_use: Callable[[int], None] = lambda _: None,
) -> tuple[SameClassifier, int]:
    """Learn from pairs; and how many were left out, as their use could not be found."""
    marked, is_same, num_left_out = _read(describer, pairs)
    if len(is_same) < MIN_PAIRS or min(sum(is_same), len(is_same) - sum(is_same)) < _FOLDS:
        raise InputError(
            f"{len(is_same)} pairs can be used, {sum(is_same)} of them the same. At least "
            f"{MIN_PAIRS} are needed, with {_FOLDS} or more of each kind."
        )
    features = _describe(describer, marked, on_use)
    first, second = _halves(features)
    centre = Centre.of(features)
    views = pair_similarities(first, second, centre).astype(np.float64)
    gold = np.array(is_same, np.float64)
    told = np.empty(len(gold))
    folds = _folds(gold)
    for fold in range(_FOLDS):
        out = folds == fold
        told[out] = _probabilities(views[out], _fit(views[~out], gold[~out]))
    accuracy = float(((told >= 0.5) == gold).mean())
    majority = float(max(gold.mean(), 1 - gold.mean()))
    classifier = SameClassifier(centre, _fit(views, gold), accuracy, majority, len(gold))
    return classifier, num_left_out


def compare_uses(
    describer: UseDescriber,
    pairs: Sequence[tuple[MarkedUse, MarkedUse]],
    classifier: SameClassifier | None = None,
    on_use: Callable[[int], None] = lambda _: None,
) -> list[SameMeaning]:
    """How alike the uses of each pair are; after judged pairs, how likely they mean the same."""
    found: list[SameMeaning] = []
    for begin in range(0, len(pairs), _AT_ONCE):
        part = pairs[begin : begin + _AT_ONCE]
        features = _describe(describer, [use for pair in part for use in pair])
        first, second = _halves(features)
        centre = classifier.centre if classifier else Centre.none(features)
        views = pair_similarities(first, second, centre)
        found += [_told(*pair, own, classifier) for pair, own in zip(part, views, strict=True)]
        on_use(2 * len(found))
    return found


def _told(
    first: MarkedUse, second: MarkedUse, views: Floats, classifier: SameClassifier | None
) -> SameMeaning:
    told = dict(zip(VIEWS, map(float, views), strict=False))
    if classifier is None:
        return SameMeaning(first, second, told)
    return SameMeaning(
        first,
        second,
        told,
        classifier.probability(views),
        classifier.accuracy,
        classifier.majority,
        classifier.num_pairs,
    )


def _read(
    describer: UseDescriber, pairs: Sequence[JudgedPair]
) -> tuple[list[MarkedUse], list[bool], int]:
    marked: list[MarkedUse] = []
    is_same = []
    for pair in pairs:
        try:
            both = [
                read_marked(describer.embedder, text, pair.word)
                for text in (pair.first, pair.second)
            ]
        except InputError:
            continue
        marked += both
        is_same.append(pair.is_same)
    return marked, is_same, len(pairs) - len(is_same)


def _describe(
    describer: UseDescriber,
    uses: Sequence[MarkedUse],
    on_use: Callable[[int], None] = lambda _: None,
) -> UseFeatures:
    spans = np.array([(use.begin, use.end) for use in uses])
    return describer.without_syntax(describer([use.words for use in uses], spans, on_use))


def _halves(features: UseFeatures) -> tuple[UseFeatures, UseFeatures]:
    """Of pairs in a row: the first uses, and the second ones."""
    first, second = (features.select(np.arange(part, len(features), 2)) for part in (0, 1))
    return first, second


def _folds(gold: _Values) -> npt.NDArray[np.int64]:
    """Which fold each pair is left out with: of both kinds about as many in each."""
    folds = np.empty(len(gold), np.int64)
    for kind in (0, 1):
        at = np.flatnonzero(gold == kind)
        folds[at] = np.arange(len(at)) % _FOLDS
    return folds


def _probabilities(views: _Values, weights: _Values) -> _Values:
    found: _Values = 1 / (1 + np.exp(-(views @ weights[:-1] + weights[-1])))
    return found


def _fit(views: _Values, gold: _Values) -> _Values:
    """Logistic regression by Newton's method: a few weights, so exact in a few steps.

    On views that are measured in their own spread, or the pull would be on those that vary little.
    """
    means, spreads = views.mean(axis=0), np.maximum(views.std(axis=0), 1e-9)
    measured = (views - means) / spreads
    rows = np.column_stack([measured, np.ones(len(views))])
    pull = np.diag([_RIDGE] * views.shape[1] + [0.0])
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        told = _probabilities(measured, weights)
        slope = rows.T @ (told - gold) + pull @ weights
        curve = (rows * (told * (1 - told))[:, None]).T @ rows + pull
        step = np.linalg.solve(curve + 1e-9 * np.eye(len(weights)), slope)
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    each = weights[:-1] / spreads
    return np.append(each, weights[-1] - each @ means)
