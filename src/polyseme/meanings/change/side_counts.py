"""How often every word occurs on two sides of a corpus, in one reading of it.

in   a corpus, and for each side the conditions that its sentences meet
out  `SideWords`: for each word, case folded, its spellings and how often it is on each side
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    All,
    Condition,
    columns_of,
    rows_meeting,
)
from polyseme.meanings.concordance.search import ShardGroups, all_groups, in_threads, read_columns
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shard_words import ShardWords


@dataclass
class SideWords:
    """The words of two sides."""

    counts: tuple[Counter[str], Counter[str]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    """How often each folded word is before and after."""
    spellings: dict[str, set[str]] = field(default_factory=dict)
    documents: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """Which documents each side has."""

    def candidates(self, min_uses: int, max_share: float) -> list[str]:
        """Words with a letter, and so many uses on each side, but for the most frequent of all."""
        before, after = self.counts
        # In a small corpus any word that is frequent enough is a large share of it.
        most = max(max_share * (before.total() + after.total()), 10 * min_uses)
        return sorted(
            word
            for word, count in before.items()
            if count >= min_uses
            and after[word] >= min_uses
            and count + after[word] <= most
            and any(map(str.isalpha, word))
        )


def count_sides(
    corpus: Corpus,
    sides: tuple[Condition, Condition],
    where: Condition = EVERYTHING,
    *,
    threads: int = 2,
) -> SideWords:
    """Count the words of both sides. `where`: what sentences of either must meet."""
    columns = list({DOCUMENT, *columns_of(All((*sides, where)))})
    total = SideWords()
    for part in in_threads(partial(_count, sides, where, columns), all_groups(corpus), threads):
        for number, counts in enumerate(part.counts):
            for spelling, count in counts.items():
                word = spelling.casefold()
                total.counts[number][word] += count
                total.spellings.setdefault(word, set()).add(spelling)
            total.documents[number].update(part.documents[number])
    return total


def _count(
    sides: tuple[Condition, Condition], where: Condition, columns: list[str], part: ShardGroups
) -> SideWords:
    """The counts of some row groups, each spelling by itself."""
    found = SideWords()
    with (
        damage_explained(part.path),
        ParquetReader(part.path, columns) as metadata,
    ):
        shard = ShardWords(words_of(part.path))
        for group in part.groups:
            values = read_columns(metadata, group, columns)
            masks = [rows_meeting(All((side, where)), values) for side in sides]
            if not any(mask.any() for mask in masks):
                continue
            words = shard[group]
            lengths = np.diff(words.offsets)
            documents = values[DOCUMENT]
            for number, mask in enumerate(masks):
                chosen_words = words.codes[np.repeat(mask, lengths)]
                counts = np.bincount(chosen_words)
                there = np.flatnonzero(counts)
                spelled = words.spell(there)
                found.counts[number].update(dict(zip(spelled, counts[there].tolist(), strict=True)))
                chosen = np.unique(documents.codes[mask])
                found.documents[number].update(
                    documents.values[code] for code in chosen[chosen >= 0]
                )
    return found
