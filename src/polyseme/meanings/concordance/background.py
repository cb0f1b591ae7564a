"""How often words occur in a reader's own texts: what is common there says nothing of a word.

    in   a corpus, or the sentences at hand where there is none
    out  counts of words, of any case; the commonest of all are stop words

A model's counts would not do: in an encyclopedia *I* and *said* are rare, in novels they are not.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polyseme.storage.parquet import read_table
from polyseme.text.corpus import Corpus, damage_explained

NUM_STOP_WORDS, _STOP_SHARE = 200, 0.01
"""The commonest words, whatever their case, that name and describe nothing; and of a small
vocabulary no larger share: a short text has few words that are only common."""


@dataclass(frozen=True, eq=False)
class Background:
    """Counts of all words of a corpus."""

    stop_words: frozenset[str]  # case-folded
    total: int  # how many words the corpus has
    _spellings: Any  # pa.Array of all spellings
    _words: Any  # the same in lower case
    _counts: Any  # pa.Array

    @classmethod
    def of(cls, corpus: Corpus) -> "Background":
        """That of a corpus; remembered, as a reader asks for one word after another."""
        changed = corpus.vocabulary.stat().st_mtime_ns
        return _read(corpus.vocabulary, corpus.config.language, changed)

    @classmethod
    def of_sentences(cls, sentences: Iterable[Sequence[str]]) -> "Background":
        """Where there is no corpus: the words of these sentences."""
        counts = Counter(word for sentence in sentences for word in sentence)
        return cls.of_counts(pa.array(list(counts), pa.string()), pa.array(list(counts.values())))

    @classmethod
    def of_counts(cls, words: Any, counts: Any) -> "Background":
        """From each spelling once, and its count: two arrays of Arrow."""
        lower = pc.utf8_lower(words)
        commonest = pc.select_k_unstable(
            counts, k=4 * NUM_STOP_WORDS, sort_keys=[("", "descending")]
        )
        found: Counter[str] = Counter()
        for word, count in zip(
            lower.take(commonest).to_pylist(), counts.take(commonest).to_pylist(), strict=True
        ):
            if any(map(str.isalpha, word)):
                found[word] += count
        ranked = sorted(found, key=lambda word: (-found[word], word))
        number = min(NUM_STOP_WORDS, 1 + int(_STOP_SHARE * len(words)))
        return cls(frozenset(ranked[:number]), pc.sum(counts).as_py() or 0, words, lower, counts)

    def content_words(self, min_count: int, number: int) -> list[str]:
        """Words that are just frequent enough, which most often have a meaning of their own.

        None is a stop word, or usually written with a capital, as names are.
        """
        is_frequent = pc.greater_equal(self._counts, min(min_count, self.total))
        is_lower = pc.equal(self._spellings, self._words)
        words = self._words.filter(pc.and_(is_frequent, is_lower)).to_pylist()
        found = self.counts(words)
        kept = [
            word
            for word in words
            if word.isalpha()
            and word not in self.stop_words
            and (len(word) > 3 or not word.isascii())
        ]
        return sorted(kept, key=lambda word: (found[word], word))[:number]

    def counts(self, words: Iterable[str]) -> Counter[str]:
        """How often each of these occurs, in any case; they are in lower case themselves."""
        wanted = pa.array(sorted(set(words)), pa.string())
        is_wanted = pc.is_in(self._words, value_set=wanted)
        table = pa.table(
            {"word": self._words.filter(is_wanted), "count": self._counts.filter(is_wanted)}
        )
        sums = table.group_by("word").aggregate([("count", "sum")])
        return Counter(
            dict(zip(sums["word"].to_pylist(), sums["count_sum"].to_pylist(), strict=True))
        )


@lru_cache(maxsize=2)
def _read(vocabulary: Path, language: str, _changed: int) -> Background:
    with damage_explained(vocabulary):
        table = read_table(vocabulary, ["word", "count"]).combine_chunks()
    words, counts = (table[name].combine_chunks() for name in ("word", "count"))
    found = Background.of_counts(words, counts)
    if len(found.stop_words) == NUM_STOP_WORDS:
        return found
    return replace(found, stop_words=found.stop_words | _stop_words(language))


def _stop_words(language: str) -> frozenset[str]:
    """Those of spaCy, for texts that are too few to tell; none if it does not know the language."""
    from spacy.util import get_lang_class

    try:
        return frozenset(get_lang_class(language).Defaults.stop_words)
    except ImportError:
        return frozenset()
