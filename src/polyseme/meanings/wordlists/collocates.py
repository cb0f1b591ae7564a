"""Uses of a word in, the words that stand around them out.

The target is all words of the windows around the uses, each counted once however many windows it is
in; the reference is all other words of the sentences that were searched. The uses themselves belong
to neither.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from polyseme.errors import InputError
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    Condition,
    rows_meeting,
)
from polyseme.meanings.concordance.search import Query, Sought, uses_in
from polyseme.meanings.concordance.sentence_table import Integers
from polyseme.meanings.concordance.uses import find_terms
from polyseme.meanings.settings import WindowConfig, WordListConfig
from polyseme.meanings.wordlists.counting import (
    Chosen,
    Mask,
    RowGroup,
    Selection,
    Unit,
    columns_read,
    count_words,
    sentences_chosen,
)
from polyseme.meanings.wordlists.word_list import WordList, list_words
from polyseme.progress import Progress
from polyseme.text.corpus import Corpus
from polyseme.text.shard_words import GroupWords

Find = Callable[[RowGroup], Integers]
"""The uses in a row group: (N, 3), row of the sentence, first word, the one after the last."""


def collocates(
    corpus: Corpus,
    query: Query,
    window: WindowConfig,
    config: WordListConfig,
    *,
    where: str | Condition | Sequence[str] = (),
    progress: Progress | None = None,
) -> WordList:
    """The collocates of a word, in the sentences that meet a condition."""
    condition = query.condition(where, corpus)
    terms = find_terms(query, corpus)
    around = _AroundUses(_Finding(terms), window, condition)
    unit = Unit(config.attribute, config.upos, query.is_case_sensitive)
    selection = Selection(corpus, around, columns_read(condition), unit)
    counts = count_words(selection, progress)
    if not counts.uses:
        raise InputError(f"{corpus.folder} has no use of {query} in the sentences of --where.")
    title = f"Collocates of {query}"
    names = ("together", "elsewhere")
    return list_words(counts, selection, config, title=title, names=names, progress=progress)


@dataclass(frozen=True)
class _Finding:
    """Finds terms."""

    terms: Sequence[Sought]

    def __call__(self, group: RowGroup) -> Integers:
        return uses_in(group.words, self.terms)


@dataclass(frozen=True)
class _AroundUses:
    """The words around uses, against all others."""

    find: Find
    window: WindowConfig
    where: Condition

    def __call__(self, group: RowGroup) -> Chosen:
        uses = self.find(group)
        searched = np.ones(len(group.words.codes), np.bool_)
        if self.where != EVERYTHING:
            accepted = rows_meeting(self.where, group.columns)
            searched = sentences_chosen(accepted, group.words)
            uses = uses[accepted[uses[:, 0]]]
        if not len(uses):
            return Chosen(np.zeros(len(searched), np.bool_), searched)
        around, own = words_around(uses, group.words, self.window)
        return Chosen(around, searched & ~around & ~own, len(uses))


def words_around(uses: Integers, words: GroupWords, window: WindowConfig) -> tuple[Mask, Mask]:
    """(T,) the words around uses, and (T,) the uses themselves, which are not among the former."""
    offsets = words.offsets
    rows, begins, ends = uses.T
    first, last = offsets[rows], offsets[rows + 1]
    begins, ends = first + begins, first + ends
    own = _covered(begins, ends, len(words.codes))
    if not window.sentence:
        first = np.maximum(first, begins - window.left)
        last = np.minimum(last, ends + window.right)
    return _covered(first, last, len(own)) & ~own, own


def _covered(begins: Integers, ends: Integers, size: int) -> Mask:
    """(size,) what lies in at least one of these spans."""
    lengths = ends - begins
    # All places of each span, one span after the other.
    places = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    covered = np.zeros(size, np.bool_)
    covered[places] = True
    return covered
