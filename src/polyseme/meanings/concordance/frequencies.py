"""Uses in, how often and how evenly they occur out.

    in   uses, and the corpus they are from
    out  `Frequency`: uses in each period (or author, or any column), and per million of its words;
         how evenly the uses are spread over documents

Words are counted in the sentences that meet the same conditions as the uses, so that a share is one
of what was searched.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    Condition,
    columns_of,
    rows_meeting,
)
from polyseme.meanings.concordance.lines import sort_key
from polyseme.meanings.concordance.search import ShardGroups, all_groups, in_threads, read_columns
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shard_words import ShardWords

Sizes = Mapping[str | None, int]
"""How many words there are with each value of a column."""


@dataclass(frozen=True)
class Frequency:
    """How often something is used where a column has one value."""

    value: str | None
    uses: int
    words: int
    """All words there."""

    @property
    def per_million(self) -> float:
        """Uses in a million words."""
        return 1e6 * self.uses / self.words


def count_words_by(
    corpus: Corpus, columns: Sequence[str], where: Condition = EVERYTHING, *, threads: int = 2
) -> dict[str, Sizes]:
    """For each column, the number of words with each of its values. Reads all of the corpus."""
    totals: dict[str, Counter[str | None]] = {name: Counter() for name in columns}
    read = list({*columns, DOCUMENT, *columns_of(where)})
    work = partial(_count_part, columns, where, read)
    for counted in in_threads(work, all_groups(corpus), threads):
        for name, counts in counted.items():
            totals[name].update(counts)
    return dict(totals)


def _count_part(
    columns: Sequence[str], where: Condition, read: list[str], part: ShardGroups
) -> dict[str, Counter[str | None]]:
    totals: dict[str, Counter[str | None]] = {name: Counter() for name in columns}
    with (
        damage_explained(part.path),
        ParquetReader(part.path, read) as metadata,
    ):
        words = ShardWords(words_of(part.path))
        for group in part.groups:
            values = read_columns(metadata, group, read)
            lengths = np.diff(words[group].offsets) * rows_meeting(where, values)
            for name in columns:
                column = values[name]
                # No value, -1, is counted at 0.
                sums = np.bincount(column.codes + 1, lengths, minlength=len(column.values) + 1)
                counted = zip((None, *column.values), sums.astype(int).tolist(), strict=True)
                totals[name].update({value: count for value, count in counted if count})
    return totals


def frequencies(uses: Uses, column: str, sizes: Sizes) -> list[Frequency]:
    """Uses by the value of a column, those without any as well; numbers by size, then text."""
    counts = Counter(uses.metadata(column))
    return [Frequency(value, counts[value], sizes[value]) for value in sorted(sizes, key=sort_key)]


def dispersion(uses: Uses, sizes: Sizes) -> float:
    """Gries's DP over documents: 0 if each has its share of the uses, near 1 if one has them all.

    Half the sum over documents of |share of the uses - share of the words|: S. Th. Gries (2008),
    Dispersions and adjusted frequencies in corpora, International Journal of Corpus Linguistics
    13(4). Documents of one name count as one.
    """
    counts = Counter(uses.metadata(DOCUMENT))
    num_uses, num_words = len(uses), sum(sizes.values())
    differences = (abs(counts[name] / num_uses - size / num_words) for name, size in sizes.items())
    return sum(differences) / 2
