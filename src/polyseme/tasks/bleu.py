"""How like texts are to those they should be: BLEU and chrF, as sacrebleu has them.

    in    gold and predicted texts
    out   `TextScores`: n-grams of each example; both measures are made of their sums

The n-grams are sacrebleu's, and so is BLEU; chrF is worked out here from the sums, for any number
of resamples at once. Both go from 0 to 1 here; elsewhere they are told in per cent, too.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from polyseme.errors import MissingExtraError
from polyseme.tasks.measures import ExampleScores, Values

TEXT_MEASURES = ("bleu", "chrf")
"""bleu: n-grams of up to four words (Papineni et al. 2002). chrf: n-grams of up to six characters,
recall counting twice as much (Popović 2015)."""
_WORD_ORDER, _CHAR_ORDER, _BETA = 4, 6, 2
Tokenize = Literal["zh", "none"]
"""zh: Chinese characters are words. none: what stands between spaces is."""


@dataclass(frozen=True, eq=False)
class TextScores(ExampleScores):
    """Of N texts."""

    words: npt.NDArray[np.int64]
    """(N, 10): for n-grams of 1 to 4 words how many are right, then how many there are; the lengths
    of prediction and gold."""
    characters: npt.NDArray[np.int64]
    """(N, 6, 3): n-grams of 1 to 6 characters of the prediction, of the gold, and of both."""

    def __len__(self) -> int:
        return len(self.words)

    def statistics(self, measure: str) -> npt.NDArray[Any]:
        """(N, 10), or (N, 6, 3)"""
        return self.words if measure == "bleu" else self.characters

    def value_of(self, sums: npt.NDArray[Any], measure: str) -> Values:
        """(R, 10) or (R, 6, 3) -> (R,)"""
        return _bleu(sums) if measure == "bleu" else _chrf(sums)

    def concat(self, others: "Sequence[TextScores]") -> "TextScores":
        """The texts of all."""
        several = [self, *others]
        characters = np.concatenate([each.characters for each in several])
        return TextScores(np.concatenate([each.words for each in several]), characters)

    def has_examples_of(self, other: "TextScores") -> bool:
        """Whether each gold text is as long."""
        return np.array_equal(self.words[:, -1], other.words[:, -1])

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Both measures, and how long predictions are, as a share of the gold."""
        predicted, gold = self.words[:, -2:].sum(axis=0).tolist()
        row = {name: self.value(name) for name in TEXT_MEASURES}
        return {"by_measure": [{**row, "length": predicted / max(1, gold)}]}


def score_texts(gold: Sequence[str], predicted: Sequence[str], tokenize: Tokenize) -> TextScores:
    """Every text by itself."""
    # What is told of a single sentence is not its score, which would need `effective_order`, but
    # its n-grams, which do not depend on it.
    bleu = load_bleu()(tokenize=tokenize, effective_order=True)
    pairs = list(zip(gold, predicted, strict=True))
    found = [bleu.sentence_score(text, [wanted]) for wanted, text in pairs]
    words = [[*each.counts, *each.totals, each.sys_len, each.ref_len] for each in found]
    characters = [_characters(wanted, text) for wanted, text in pairs]
    return TextScores(
        np.array(words, np.int64).reshape(-1, 2 * _WORD_ORDER + 2),
        np.array(characters, np.int64).reshape(-1, _CHAR_ORDER, 3),
    )


def load_bleu() -> Any:
    """sacrebleu's class; a MissingExtraError without it."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise MissingExtraError.of(
            "sacrebleu", extra="torch", purpose="Evaluating generated texts"
        ) from error
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it warns of texts that are words
    return BLEU


def _characters(gold: str, predicted: str) -> list[tuple[int, int, int]]:
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    pairs = zip(
        extract_all_char_ngrams(predicted, _CHAR_ORDER),
        extract_all_char_ngrams(gold, _CHAR_ORDER),
        strict=True,
    )
    # As sacrebleu does, n-grams that the gold is too short for are not held against a prediction.
    return [
        (own.total() if wanted else 0, wanted.total(), (own & wanted).total())
        for own, wanted in pairs
    ]


def _bleu(sums: npt.NDArray[Any]) -> Values:
    compute = load_bleu().compute_bleu
    found = []
    for row in sums.astype(np.int64).tolist():
        right, total = row[:_WORD_ORDER], row[_WORD_ORDER : 2 * _WORD_ORDER]
        score = compute(right, total, sys_len=row[-2], ref_len=row[-1], smooth_method="exp").score
        found.append(score / 100)
    return np.array(found)


def _chrf(sums: npt.NDArray[Any]) -> Values:
    """(R, 6, 3) -> (R,): means of precision and recall over the orders that both sides have."""
    predicted, gold, both = np.moveaxis(sums.astype(np.float64), -1, 0)  # (R, 6)
    counts = (predicted > 0) & (gold > 0)
    orders = np.maximum(1, counts.sum(axis=-1))
    zeros = np.zeros_like(both)
    precision = np.divide(both, predicted, out=zeros.copy(), where=counts).sum(axis=-1) / orders
    recall = np.divide(both, gold, out=zeros.copy(), where=counts).sum(axis=-1) / orders
    factor = _BETA**2
    below = factor * precision + recall
    value: Values = np.divide(
        (1 + factor) * precision * recall, below, out=np.zeros_like(below), where=below > 0
    )
    return value
