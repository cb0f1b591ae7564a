"""Learning from a user's own labels: a few uses are labelled by hand, the others follow.

    in    features of all uses, (N, D), and the labels of some of them, by number
    out   which uses to label first; a label and a confidence for every use, and which to look at
          next

A logistic regression, in which all labels weigh the same, however many uses have them. It is given
features in which near uses have been drawn together (`draw_together`), labelled or not: so what the
few labelled ones have by chance counts less. Measured on CoarseWSD-20 and on novels (see
docs/experiments.md).
"""

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError, extra_needed_for
from polyseme.meanings.concordance.export import Cell, Tabular, guarded, read_table
from polyseme.meanings.concordance.kept_senses import KeptSenses, Reliability, keep_senses
from polyseme.meanings.concordance.uses import Use, Uses, UseTable
from polyseme.meanings.edits import UseGroup, read_edits, replay
from polyseme.meanings.features.use_features import Floats, UseEncoder
from polyseme.meanings.groups.calibration import encode_uses
from polyseme.meanings.groups.grouping import centred, join_views, unit_length
from polyseme.meanings.groups.senses import Senses, use_ids
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus

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
    given = dict(sorted(labels.items()))
    names = sorted(set(given.values()))
    rows = _from_middle(features)
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

    given = dict(sorted(labels.items()))
    if len(given) == 1:
        return dict.fromkeys(given, "")
    rows, names = _from_middle(features)[list(given)], np.array(list(given.values()), dtype=object)
    found = names.copy()
    for known, out in KFold(min(_FOLDS, len(given)), shuffle=True, random_state=1).split(rows):
        probabilities = _probabilities(rows[known], names[known].tolist(), rows[out])
        found[out] = np.unique(names[known])[probabilities.argmax(axis=1)]
    return dict(zip(given, found.tolist(), strict=True))


def _from_middle(features: npt.NDArray[Any]) -> Values:
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


LABEL = "label"
"""The column that has the labels given by hand."""
_KEY = ("sentence_id", "begin")


@dataclass(frozen=True, eq=False)
class LabelledUses(Tabular):
    """Every use with a label. `labelled.learned` has the confidences."""

    uses: Uses
    learned: LearnedLabels
    left_out: Mapping[str, tuple[int, int]]
    """For each label, how many uses were given it by hand; and how many of them would have got it,
    had they and up to a tenth of the others no label."""
    next: tuple[int, ...]
    """Numbers of the uses to look at next, the most useful first."""

    def lines_to_label(self) -> Iterator[Use]:
        """The uses to look at next."""
        return (self.uses[number] for number in self.next)

    @property
    def right_when_left_out(self) -> float:
        """Which share of the labels by hand would have been learned from the others."""
        return sum(right for _, right in self.left_out.values()) / len(self.learned.given)

    def __repr__(self) -> str:
        return summary("LabelledUses", counted(len(self.uses), "use"), repr(self.learned))

    def _repr_html_(self) -> str:
        lines = [(use.text, self.learned.labels[n], float(self.learned.confidence[n]))
                 for n, use in zip(self.next, self.lines_to_label(), strict=True)]  # fmt: skip
        below = html_table("Look at these next", lines, ("text", LABEL, "confidence"))
        return self.learned._repr_html_() + (below if lines else "")

    def table(self) -> UseTable:
        """The uses, one per row: label by hand, learned label, confidence, and which comes next."""
        learned, order = self.learned, {number: n for n, number in enumerate(self.next, start=1)}
        numbers = range(len(self.uses))
        columns: dict[str, list[Cell]] = {
            LABEL: [learned.given.get(number) for number in numbers],
            "predicted": list(learned.labels),
            "confidence": [round(float(value), 4) for value in learned.confidence],
            "look_next": [order.get(number) for number in numbers],
        }
        return UseTable(self.uses, columns)


def label_uses(
    uses: Uses,
    labels: Mapping[int, str],
    encoder: UseEncoder,
    *,
    num_next: int = 10,
    at_random: bool = False,
    seed: int = 1,
    progress: Progress = SILENT,
) -> LabelledUses:
    """Learn from the labels of some uses, by their numbers, what the others are.

    The lines to look at next are those the labels leave unclear, or, `at_random`, a sample.
    """
    progress.start("Describing uses", len(uses))
    features = encode_uses(uses, encoder, progress.update)
    vectors = draw_together(join_views(features, seed=seed))
    learned = learn_labels(vectors, labels)
    how = "random" if at_random else "uncertain"
    chosen = tuple(learned.next_to_label(num_next, how=how, seed=seed))  # type: ignore[arg-type]
    return LabelledUses(uses, learned, _left_out(learned, vectors), chosen)


def keep_labels(
    corpus: Corpus,
    uses: Uses,
    labels: Sequence[str],
    left_out: Mapping[str, tuple[int, int]],
    source: Path,
) -> KeptSenses:
    """Keep what every use was labelled, by a person or after a person's labels."""
    word = " / ".join(uses.query.forms) if uses.query else uses[0].form
    by_hand = sum(total for total, _ in left_out.values()) / len(uses)
    reliability = Reliability.of_labels(left_out, by_hand)
    return keep_senses(corpus, word, uses.places, labels, reliability, source, forms=uses.forms())


def _left_out(learned: LearnedLabels, vectors: Floats) -> dict[str, tuple[int, int]]:
    """For each label how many have it, and how many would without it."""
    again = labels_when_left_out(vectors, learned.given)
    total = Counter(learned.given.values())
    right = Counter(own for number, own in learned.given.items() if again[number] == own)
    return {label: (total[label], right[label]) for label in sorted(total)}


def read_labels(path: Path, uses: Uses) -> dict[int, str]:
    """Labels by the number of the use: from a table with `sentence_id`, `begin`, or a log of edits.

    Rows without a label are passed over. Labels of uses that are not among these are an error.
    """
    if path.suffix.lower() == ".jsonl":
        return _from_log(path, uses)
    given: dict[tuple[str, str], str] = {}
    for number, row in enumerate(_rows(path), start=2):
        label, key = row[LABEL].strip(), (row[_KEY[0]], row[_KEY[1]].strip())
        if label and given.setdefault(key, label) != label:
            raise InputError(
                f"Line {number} of {path} calls a use {label!r} that is {given[key]!r} above."
            )
    if not given:
        raise InputError(f"The column {LABEL!r} of {path} is empty. Label some lines, 20 or so.")
    # As the table wrote them: a cell that looks like a formula has an apostrophe there.
    keys = [(str(guarded(use.sentence_id)), str(use.starts[use.begin])) for use in uses]
    found = {number: given[key] for number, key in enumerate(keys) if key in given}
    if missing := len(given.keys() - set(keys)):
        raise InputError(
            f"{missing:,} of {len(given):,} labels in {path} are of uses that are not found here. "
            "Look for the same word, with the same forms and conditions, in the same corpus."
        )
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    columns, rows = read_table(path)
    if missing := {LABEL, *_KEY} - set(columns):
        raise InputError(
            f"{path} lacks the column {', '.join(sorted(missing))}. Write a table with `polyseme "
            f"uses WORD --in CORPUS --sample 20 --out {path.name}`, add a column {LABEL!r}, and "
            "fill it in."
        )
    return rows


def _from_log(path: Path, uses: Uses) -> dict[int, str]:
    if not path.is_file():
        raise InputError(f"There is no file of edits at {path}.")
    ids = use_ids(uses)
    labels = replay({"all": UseGroup("all", frozenset(ids))}, read_edits(path).edits).labels
    if not labels:
        raise InputError(f"No edit in {path} labels a use of these.")
    return {number: labels[use] for number, use in enumerate(ids) if use in labels}


def grouped_by_label(senses: Senses, learned: LearnedLabels) -> Senses:
    """The senses with a group for each label, those that were given first in the log first."""
    order = list(dict.fromkeys([*senses.labels_by_hand.values(), *learned.labels]))
    labels = np.array([order.index(label) for label in learned.labels], np.int64)
    stability = (math.nan,) * len(order)
    grouping = replace(senses.grouping, labels=labels, stability=stability, is_one_meaning=False)
    return replace(senses.in_groups(grouping, {label: label for label in order}), calibration=None)
