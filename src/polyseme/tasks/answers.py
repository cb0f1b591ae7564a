"""How right an answer is: exact match and F1, as SQuAD and CMRC 2018 define them.

    words        SQuAD 1.1: without case, punctuation and articles; F1 over the words in common
    characters   CMRC 2018: without case and punctuation, each Chinese character by itself; F1 over
                 the longest run in common

Of several gold answers the one that fits best counts. Ours differs from CMRC's own script in one
point: text that is not Chinese is split at all that is no letter or digit, not by NLTK.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from polyseme.tasks.measures import ExampleScores, Values

AnswerUnit = Literal["words", "characters"]
ANSWER_MEASURES = ("f1", "em")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_HAN = "\u4e00-\u9fff"
_PART = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+")


def exact_match(answer: str, gold: str, unit: AnswerUnit) -> float:
    """1 if both are the same once normalized, else 0."""
    if unit == "words":
        return float(_words(answer) == _words(gold))
    return float(_without_punctuation(answer) == _without_punctuation(gold))


def f1(answer: str, gold: str, unit: AnswerUnit) -> float:
    """The harmonic mean of how much of the answer is right and how much of the gold is there."""
    split = _words if unit == "words" else _characters
    found, wanted = split(answer), split(gold)
    if not found or not wanted:
        return float(found == wanted)
    if unit == "words":
        shared = (Counter(found) & Counter(wanted)).total()
    else:
        shared = _longest_run(found, wanted)
    return 2 * shared / (len(found) + len(wanted))


def _words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _characters(text: str) -> list[str]:
    return _PART.findall(text.lower())


def _without_punctuation(text: str) -> str:
    is_kept = (c for c in text.lower().strip() if unicodedata.category(c)[0] not in "PSZ")
    return "".join(is_kept)


def _longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """How many units the longest run has that occurs in both."""
    longest, before = 0, [0] * (len(other) + 1)
    for unit in one:
        here = [0] * (len(other) + 1)
        for place, candidate in enumerate(other, start=1):
            if unit == candidate:
                here[place] = before[place - 1] + 1
        longest, before = max(longest, *here), here
    return longest


@dataclass(frozen=True, eq=False)
class AnswerScores(ExampleScores):
    """Exact match and F1 of N answers."""

    em: Values
    f1: Values
    is_in_text: npt.NDArray[np.bool_]
    """Whether a gold answer stands in its passage; no other can be found."""

    @classmethod
    def of(
        cls,
        answers: Iterable[str],
        gold: Sequence[Sequence[str]],
        unit: AnswerUnit,
        *,
        in_text: Any,
    ) -> "AnswerScores":
        """Against the gold answers of each question, of which the best counts."""
        pairs = list(zip(answers, gold, strict=True))
        return cls(
            np.array(
                [max((exact_match(a, g, unit) for g in golds), default=0) for a, golds in pairs]
            ),
            np.array([max((f1(a, g, unit) for g in golds), default=0) for a, golds in pairs]),
            np.array(in_text, np.bool_),
        )

    def __len__(self) -> int:
        return len(self.em)

    def statistics(self, measure: str) -> Values:
        """(N, 2): the measure and one."""
        own = self.em if measure == "em" else self.f1
        return np.stack([own, np.ones_like(own)], axis=1)

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:  # noqa: ARG002
        """(R, 2) -> (R,): the mean."""
        found: Values = sums[:, 0] / np.maximum(sums[:, 1], 1)
        return found

    def concat(self, others: "Sequence[AnswerScores]") -> "AnswerScores":
        """The answers of all."""
        several = [self, *others]
        parts = ([getattr(each, name) for each in several] for name in ("em", "f1", "is_in_text"))
        return AnswerScores(*map(np.concatenate, parts))

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Both measures, and how many questions no span can answer."""
        missing = int((~self.is_in_text).sum())
        row = {name: self.value(name) for name in ANSWER_MEASURES}
        return {"answers": [{**row, "questions": len(self), "not in the text": missing}]}
