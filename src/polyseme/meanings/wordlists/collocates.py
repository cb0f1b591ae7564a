"""Uses of a word in, the words that stand around them out.

The target is all words of the windows around the uses, each counted once however many windows it is
in; the reference is all other words of the sentences that were searched. The uses themselves belong
to neither.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyseme.errors import InputError
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    Condition,
    parse_where,
    rows_meeting,
)
from polyseme.meanings.concordance.kept_senses import KeptSenses, places_in
from polyseme.meanings.concordance.search import CorpusColumns, Query, uses_in
from polyseme.meanings.concordance.sentence_table import Integers, covered
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
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus
from polyseme.text.shards import GroupWords

Find = Callable[[RowGroup], Integers]
"""The uses in a row group: (N, 3), row of the sentence, first word, the one after the last."""


class NamedUses(NamedTuple):
    """Uses, and what they are called in titles."""

    name: str
    find: Find

    @classmethod
    def of_query(cls, query: Query, corpus: Corpus) -> "NamedUses":
        """All uses of a word, or of what else is looked for."""
        terms = find_terms(query, corpus)
        return cls(str(query), lambda group: uses_in(group.words, terms, group.place))

    @classmethod
    def of_sense(cls, kept: KeptSenses, sense: str) -> "NamedUses":
        """Those of a sense that is kept."""
        return cls(f"{kept.word} ({sense})", FindsPlaces(kept.places(sense)))


def collocates(
    corpus: Corpus,
    query: Query,
    window: WindowConfig,
    config: WordListConfig,
    *,
    where: str | Condition | Sequence[str] = (),
    progress: Progress = SILENT,
) -> WordList:
    """The collocates of a word, in the sentences that meet a condition."""
    uses = NamedUses.of_query(query, corpus)
    unit = Unit(config.attribute, config.upos, query.is_case_sensitive)
    condition = query.condition(where, corpus)
    return collocates_of(corpus, uses, window, config, unit, condition, progress)


def collocates_of(
    corpus: Corpus,
    of: NamedUses,
    window: WindowConfig,
    config: WordListConfig,
    unit: Unit,
    where: str | Condition | Sequence[str] = (),
    progress: Progress = SILENT,
) -> WordList:
    """The collocates of any uses."""
    selection = around_uses(corpus, of, window, unit, where)
    counts = count_words(selection, progress)
    if not counts.uses:
        raise InputError(f"{corpus.folder} has no use of {of.name} in the sentences of --where.")
    names = ("together", "elsewhere")
    title = f"Collocates of {of.name}"
    return list_words(counts, selection, config, title=title, names=names, progress=progress)


def collocates_between(
    corpus: Corpus,
    both: tuple[NamedUses, NamedUses],
    window: WindowConfig,
    config: WordListConfig,
    unit: Unit,
    where: str | Condition | Sequence[str] = (),
    progress: Progress = SILENT,
) -> WordList:
    """The words around some uses against those around others, as two senses of a word."""
    selection = between_uses(corpus, both, window, unit, where)
    counts = count_words(selection, progress)
    names = (both[0].name, both[1].name)
    for name, size in zip(names, (counts.target_size, counts.reference_size), strict=True):
        if not size:
            raise InputError(f"There are no words around uses of {name} to compare.")
    if config.sort in ("log-dice", "mi3"):  # which are of one set of uses
        config = config.model_copy(update={"sort": "g2"})
    title = f"Collocates of {names[0]} against {names[1]}"
    return list_words(
        counts, selection, config, title=title, names=names, with_fewer=True, progress=progress
    )


def around_uses(
    corpus: Corpus,
    of: NamedUses,
    window: WindowConfig,
    unit: Unit,
    where: str | Condition | Sequence[str] = (),
) -> Selection:
    """The words around uses, against all others in the sentences that meet a condition."""
    condition = parse_where(where, CorpusColumns(corpus))
    around = _AroundUses(of.find, window, condition)
    columns, is_everywhere = columns_read(condition), condition == EVERYTHING
    return Selection(corpus, around, columns, unit, has_rest=is_everywhere)


def between_uses(
    corpus: Corpus,
    both: tuple[NamedUses, NamedUses],
    window: WindowConfig,
    unit: Unit,
    where: str | Condition | Sequence[str] = (),
) -> Selection:
    """The words around some uses, against those around others."""
    first, second = (around_uses(corpus, each, window, unit, where) for each in both)
    return replace(first, choose=_BetweenUses(first.choose, second.choose), has_rest=False)


@dataclass(frozen=True, eq=False)
class FindsPlaces:
    """Uses by their places in the corpus, (N, 5): shard, row group, row, begin, end."""

    places: Integers

    def __call__(self, group: RowGroup) -> Integers:
        """Those of a row group."""
        found = places_in(self.places, group.place)
        return found[np.lexsort(found.T[::-1])]


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


@dataclass(frozen=True)
class _BetweenUses:
    """The words around some uses, against those around others; what is around both is neither."""

    first: Callable[[RowGroup], Chosen]
    second: Callable[[RowGroup], Chosen]

    def __call__(self, group: RowGroup) -> Chosen:
        one, other = self.first(group), self.second(group)
        # The uses themselves are of neither: a use of one sense may stand in the window of another.
        own = ~(one.target | one.reference) | ~(other.target | other.reference)
        target = one.target & ~other.target & ~own
        return Chosen(target, other.target & ~one.target & ~own)


def words_around(uses: Integers, words: GroupWords, window: WindowConfig) -> tuple[Mask, Mask]:
    """(T,) the words around uses, and (T,) the uses themselves, which are not among the former."""
    offsets = words.offsets
    rows, begins, ends = uses.T
    first, last = offsets[rows], offsets[rows + 1]
    begins, ends = first + begins, first + ends
    own = covered(begins, ends, len(words.codes))
    if not window.sentence:
        first = np.maximum(first, begins - window.left)
        last = np.minimum(last, ends + window.right)
    return covered(first, last, len(own)) & ~own, own
