"""How alike uses are in meaning, seen three ways: by context, by substitutes, by their sentences.

    in   a use, others to hold it against, and what all such uses have in common
    out  (N, V): a cosine for each view; their mean is how alike two uses are

What all uses of a word share says nothing of its meanings. So contexts and bags are measured from
a `Centre`, and a substitute that fits everywhere counts less (TF-IDF).
"""

from dataclasses import dataclass

import numpy as np

from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.grouping import unit_length

VIEWS = ("context", "bag", "substitutes")
"""The columns; the last only of models that predict words."""
_IDS = 1 << 16  # numbers that substitutes may have


@dataclass(frozen=True, eq=False)
class Centre:
    """What uses have in common."""

    context: Floats  # (D,)
    bag: Floats  # (D,)
    weights: Floats  # (W,) of each word as a substitute

    @classmethod
    def of(cls, features: UseFeatures) -> "Centre":
        """That of these uses."""
        found = features.substitutes
        ids = np.empty(0, np.int32) if found is None else found.ravel()
        weights = np.log((1 + len(features)) / (1 + np.bincount(ids, minlength=_IDS))) + 1
        context, bag = (view.mean(axis=0) for view in (features.context, features.bag))
        return cls(context, bag, weights.astype(np.float32))

    @classmethod
    def none(cls, features: UseFeatures) -> "Centre":
        """For uses of which nothing else is known."""
        context, bag = (
            np.zeros(view.shape[1], np.float32) for view in (features.context, features.bag)
        )
        return cls(context, bag, np.ones(_IDS, np.float32))


def similarities(one: UseFeatures, many: UseFeatures, centre: Centre) -> Floats:
    """(N, V): of the first use of `one` with each of `many`."""
    views = [
        _cosines(one.context, many.context, centre.context),
        _cosines(one.bag, many.bag, centre.bag),
    ]
    if one.substitutes is not None and many.substitutes is not None:
        squares = centre.weights**2
        is_own = np.zeros(_IDS, np.float32)
        is_own[one.substitutes[0]] = 1
        each = squares[many.substitutes]  # (N, K)
        shared = (each * is_own[many.substitutes]).sum(axis=1)
        lengths = np.sqrt(each.sum(axis=1) * squares[one.substitutes[0]].sum())
        views.append(shared / np.maximum(lengths, 1e-12))
    found: Floats = np.stack(views, axis=1).astype(np.float32)
    return found


def _cosines(one: Floats, many: Floats, centre: Floats) -> Floats:
    found: Floats = unit_length(many - centre) @ unit_length(one[:1] - centre)[0]
    return found


def pair_similarities(first: UseFeatures, second: UseFeatures, centre: Centre) -> Floats:
    """(N, V): of each use of `first` with that of `second` in the same place."""
    rows = [np.array([row]) for row in range(len(first))]
    return np.concatenate(
        [similarities(first.select(row), second.select(row), centre) for row in rows]
    )
