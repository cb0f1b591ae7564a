"""How much more often words occur in some words than in others.

    in   for each word its count in a target (the words around a word, or one part of a corpus) and
         in a reference (all other words, or another part), and the sizes of both
    out  G², log ratio with its interval, logDice, MI³, and Gries's DP

One contingency table serves collocates and keywords: collocates are the keywords of the words that
stand around a word (Evert 2008, Corpora and collocations, section 4). Logarithms are to base 2 but
for G², whose logarithm is natural.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Z_95 = 1.959963984540054
"""Of the standard normal distribution 95 % lie within so many standard deviations."""
UNSEEN = 0.5
"""In the place of a count of none, in ratios only (Hardie 2014, Log Ratio)."""


@dataclass(frozen=True)
class Contingency:
    """Words counted in a target and in a reference that have no word in common."""

    target: Floats  # (W,)
    reference: Floats  # (W,)
    target_size: float
    reference_size: float

    @property
    def expected(self) -> Floats:
        """(W,) how often the word would be in the target if it were as frequent in both."""
        share = self.target_size / max(1, self.target_size + self.reference_size)
        return (self.target + self.reference) * share

    @property
    def g2(self) -> Floats:
        """(W,) the log-likelihood ratio of all four cells (Dunning 1993); never negative."""
        sizes = self.target_size, self.reference_size
        total = sum(sizes)
        both = self.target + self.reference
        found = np.zeros(len(both))
        for counts, size in zip((self.target, self.reference), sizes, strict=True):
            for observed, of_row in ((counts, both), (size - counts, total - both)):
                found += _x_log_ratio(observed, of_row * size / max(1, total))
        return np.maximum(0, 2 * found)

    @property
    def log_ratio(self) -> Floats:
        """(W,) how many times the word's share of the target is that of the reference, as a power
        of two: 1 is twice as often, -1 half as often (Hardie 2014)."""
        target, reference = (self._seen(counts) for counts in (self.target, self.reference))
        shares = target / max(1, self.target_size), reference / max(1, self.reference_size)
        found: Floats = np.log2(shares[0] / shares[1])
        return found

    @property
    def binomial_variance(self) -> Floats:
        """(W,) that of the natural logarithm of the ratio, if words were drawn one by one
        (Katz et al. 1978)."""
        parts = (
            1 / self._seen(counts) - 1 / max(1, size)
            for counts, size in (
                (self.target, self.target_size),
                (self.reference, self.reference_size),
            )
        )
        return np.maximum(0, sum(parts, np.zeros(len(self.target))))

    @property
    def mi3(self) -> Floats:
        """(W,) mutual information with the count cubed, so that rare words do not lead
        (Daille 1994)."""
        with np.errstate(divide="ignore"):
            found: Floats = np.log2(self.target**3 / np.maximum(self.expected, 1e-300))
        return found

    @staticmethod
    def _seen(counts: Floats) -> Floats:
        return np.where(counts > 0, counts, UNSEEN)


def log_dice(joint: Floats, first: float, second: Floats) -> Floats:
    """(W,) 14 + log2 of Dice's coefficient (Rychlý 2008): how often two words occur together, and
    how often each; the size of the corpus has no part in it."""
    with np.errstate(divide="ignore"):
        found: Floats = 14 + np.log2(2 * joint / (first + second))
    return found


def log_ratio_interval(log_ratio: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of log ratios, from the variance of the ratio's natural logarithm."""
    half = Z_95 * np.sqrt(variance) / np.log(2)
    return log_ratio - half, log_ratio + half


def _x_log_ratio(observed: Floats, expected: Floats) -> Floats:
    """x log(x / e), which is nothing where x is nothing."""
    ratio = np.divide(observed, expected, out=np.ones(len(observed)), where=observed > 0)
    return observed * np.log(ratio)


@dataclass(frozen=True)
class DocumentSpread:
    """How words are spread over documents."""

    num_documents: npt.NDArray[np.int64]
    """(W,) in how many documents the word is, of the side where it is more frequent."""
    dp: Floats
    """(W,) Gries's DP on that side: 0 is even, near 1 is all in one document."""
    variance: Floats
    """(W,) of the ratio's natural logarithm, if documents were drawn and not words."""


@dataclass(frozen=True)
class DocumentCounts:
    """Counts of some words in each document, where they are not zero."""

    words: npt.NDArray[np.int64]  # (P,) which word
    documents: npt.NDArray[np.int64]  # (P,) in which document
    target: Floats  # (P,)
    reference: Floats  # (P,)
    target_sizes: Floats  # (D,) all words of the target in each document
    reference_sizes: Floats  # (D,)

    def spread(self, is_more: npt.NDArray[np.bool_]) -> DocumentSpread:
        """Of each word; `is_more`: (W,) which are more frequent in the target.

        A word's share of the target and of the reference are ratios of sums over documents; the
        variance of their logarithms' difference is that of the sum of each document's part in it
        (linearization). Where every word is a document of its own, it is the binomial one.
        """
        target, rest = self._side(self.target, self.target_sizes, len(is_more))
        reference, others = self._side(self.reference, self.reference_sizes, len(is_more))
        parts = target - reference
        rest = others - rest  # a document's part, for any word, if it does not have the word
        has_words = (self.target_sizes > 0) | (self.reference_sizes > 0)
        num = max(2, int(has_words.sum()))
        total = self._summed(parts * (parts + 2 * rest[self.documents]), len(is_more))
        variance = np.maximum(0, total + float((rest**2).sum())) * num / (num - 1)
        shown = np.where(is_more[self.words], self.target, self.reference)
        sizes = np.where(is_more[self.words], *(
            each[self.documents] / max(1.0, float(each.sum()))
            for each in (self.target_sizes, self.reference_sizes)))  # fmt: skip
        found = np.where(is_more[self.words], target, reference)
        dp = (1 + self._summed((shown > 0) * (np.abs(found - sizes) - sizes), len(is_more))) / 2
        documents = self._summed(shown > 0, len(is_more)).astype(np.int64)
        return DocumentSpread(documents, np.clip(dp, 0, 1), variance)

    def _side(self, counts: Floats, sizes: Floats, num_words: int) -> tuple[Floats, Floats]:
        """(P,) a document's share of a word, and (D,) its share of all words."""
        totals = np.maximum(self._summed(counts, num_words), 1)
        return counts / totals[self.words], sizes / max(1.0, float(sizes.sum()))

    def _summed(self, values: npt.NDArray[Any], num_words: int) -> Floats:
        return np.bincount(self.words, values, minlength=num_words).astype(np.float64)
