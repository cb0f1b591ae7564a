"""Two uses in, whether they mean the same out.

    in   two marked sentences; perhaps pairs that people judged
    out  `SameMeaning`: how alike the uses are by each view, and a probability if pairs were given

How alike is alike enough no model knows: it depends on how finely people tell senses apart. So
without judged pairs there is a similarity and no verdict. With them, a logistic regression on the
views learns their line, and says how often it is right about pairs it has not seen.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyseme.display import html_table, sentence, summary
from polyseme.errors import InputError, extra_needed_for
from polyseme.limits import FILE_BYTES, parse_json, read_text
from polyseme.meanings.concordance.uses import MarkedUse, read_marked
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.nearest import VIEWS, Centre, pair_similarities

_LABELS = {"true": True, "t": True, "1": True, "same": True,
           "false": False, "f": False, "0": False, "different": False}  # fmt: skip
_NEEDED = ("sentence1", "sentence2", "label")


class _Tabs(csv.excel_tab):
    """A quotation mark in a sentence is one, and nothing else."""

    quoting = csv.QUOTE_NONE


@dataclass(frozen=True)
class JudgedPair:
    """Two sentences, the use in each marked with asterisks or named, and whether they agree."""

    first: str
    second: str
    word: str
    is_same: bool


def read_pairs(path: Path) -> tuple[list[JudgedPair], int]:
    """All pairs that can be read, and how many cannot."""
    try:
        rows = list(_rows(path))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    found = [pair for pair in map(_pair, rows) if pair is not None]
    if not found:
        raise InputError(
            f"{path} has no pair that can be read. Expected: {', '.join(_NEEDED)} (true or false), "
            "in .jsonl or with a header in .tsv or .csv; the use marked with asterisks, or `word`."
        )
    return found, len(rows) - len(found)


def _rows(path: Path) -> Iterator[Any]:
    text = read_text(path, FILE_BYTES)
    if path.suffix in (".tsv", ".csv"):
        dialect = _Tabs if path.suffix == ".tsv" else csv.excel
        yield from csv.DictReader(StringIO(text), dialect=dialect)
        return
    for line in text.splitlines():
        if line.strip():
            try:
                yield parse_json(line)
            except ValueError:
                yield None


def _pair(row: Any) -> JudgedPair | None:
    if not isinstance(row, Mapping) or any(row.get(name) is None for name in _NEEDED):
        return None
    is_same = _LABELS.get(str(row["label"]).strip().casefold())
    first, second = (_marked(row, number) for number in ("1", "2"))
    if is_same is None or not (first and second):
        return None
    return JudgedPair(first, second, str(row.get("word") or row.get("lemma") or ""), is_same)


def _marked(row: Mapping[str, Any], number: str) -> str:
    """The sentence, with the use between asterisks if its characters are named."""
    text = str(row[f"sentence{number}"])
    try:
        begin, end = (int(row[f"{name}{number}"]) for name in ("start", "end"))
    except (KeyError, TypeError, ValueError):
        return text
    if not 0 <= begin < end <= len(text):
        return ""
    plain = text.replace("*", " ")  # or what stands there would be taken for a mark
    return f"{plain[:begin]}*{plain[begin:end]}*{plain[end:]}"


MIN_PAIRS = 20
"""Pairs of which a line can be learned: ten of each kind, and more are better."""
FOLDS = 5
"""Of the cross-validation: so many pairs of each kind are needed."""
_AT_ONCE = 1_000  # pairs whose features are in memory together


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
    model: Any  # sklearn.pipeline.Pipeline
    accuracy: float
    majority: float
    num_pairs: int

    @classmethod
    def learn(cls, centre: Centre, views: Floats, gold: npt.NDArray[np.bool_]) -> "SameClassifier":
        """From the views of judged pairs, (N, V), and which of them are the same."""
        with extra_needed_for("Learning from judged pairs"):
            from sklearn.linear_model import LogisticRegression
            from sklearn.model_selection import StratifiedKFold, cross_val_predict
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler

        # Views differ in spread, and the penalty would fall on those that vary little.
        model = make_pipeline(StandardScaler(), LogisticRegression())
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
        exact = views.astype(np.float64)
        told = cross_val_predict(model, exact, gold, cv=folds)
        accuracy, majority = float((told == gold).mean()), float(max(gold.mean(), 1 - gold.mean()))
        return cls(centre, model.fit(exact, gold), accuracy, majority, len(gold))

    def probability(self, views: Floats) -> float:
        """That a pair with these views is judged the same."""
        return float(self.probabilities(views.reshape(1, -1))[0])

    def probabilities(self, views: Floats) -> npt.NDArray[np.float64]:
        """(N,) the same of many."""
        found: npt.NDArray[np.float64] = self.model.predict_proba(views.astype(np.float64))[:, 1]
        return found


def learn_same(
    encoder: ModelUseEncoder,
    pairs: Sequence[JudgedPair],
    on_use: Callable[[int], None] = lambda _: None,
) -> tuple[SameClassifier, int]:
    """Learn from pairs; and how many were left out, as their use could not be found."""
    marked, is_same, num_left_out = _read(encoder, pairs)
    if len(is_same) < MIN_PAIRS or min(sum(is_same), len(is_same) - sum(is_same)) < FOLDS:
        raise InputError(
            f"{len(is_same)} pairs can be used, {sum(is_same)} of them the same. At least "
            f"{MIN_PAIRS} are needed, with {FOLDS} or more of each kind."
        )
    features = _encode(encoder, marked, on_use)
    centre = Centre.of(features)
    views = pair_similarities(*_halves(features), centre)
    gold = np.array(is_same)
    classifier = SameClassifier.learn(centre, views, gold)
    return classifier, num_left_out


def compare_uses(
    encoder: ModelUseEncoder,
    pairs: Sequence[tuple[MarkedUse, MarkedUse]],
    classifier: SameClassifier | None = None,
    on_use: Callable[[int], None] = lambda _: None,
) -> list[SameMeaning]:
    """How alike the uses of each pair are; after judged pairs, how likely they mean the same."""
    found: list[SameMeaning] = []
    for begin in range(0, len(pairs), _AT_ONCE):
        part = pairs[begin : begin + _AT_ONCE]
        features = _encode(encoder, [use for pair in part for use in pair])
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
    encoder: ModelUseEncoder, pairs: Sequence[JudgedPair]
) -> tuple[list[MarkedUse], list[bool], int]:
    marked: list[MarkedUse] = []
    is_same = []
    for pair in pairs:
        try:
            both = [
                read_marked(encoder.embedder, text, pair.word) for text in (pair.first, pair.second)
            ]
        except InputError:
            continue
        marked += both
        is_same.append(pair.is_same)
    return marked, is_same, len(pairs) - len(is_same)


def _encode(
    encoder: ModelUseEncoder,
    uses: Sequence[MarkedUse],
    on_use: Callable[[int], None] = lambda _: None,
) -> UseFeatures:
    spans = np.array([(use.begin, use.end) for use in uses])
    return encoder.without_syntax(encoder([use.words for use in uses], spans, on_use))


def _halves(features: UseFeatures) -> tuple[UseFeatures, UseFeatures]:
    """Of pairs in a row: the first uses, and the second ones."""
    first, second = (features.select(np.arange(part, len(features), 2)) for part in (0, 1))
    return first, second
