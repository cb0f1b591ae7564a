"""Terms and conditions in, the sentences that have them out, from as few row groups as will do.

    in   a corpus, terms in its spellings, conditions on metadata
    out  a table of sentences; for each use its sentence and its words there

Words are looked for as numbers (`text.shard_words`): a row group's distinct words are looked up
once, and only where a use is found is anything read from its Parquet file, the metadata. Several
threads read, as Arrow and numpy let others work meanwhile.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from polyseme.meanings.concordance.conditions import ColumnValues, Condition, rows_meeting
from polyseme.meanings.concordance.query import Term, check_uses
from polyseme.meanings.concordance.sentence_table import (
    DOCUMENT,
    Integers,
    SentenceTable,
    TextColumn,
)
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shard_words import GroupWords, ShardWords

MAX_USES = 1_000_000
"""Some 200 MB."""
_TOGETHER = 16  # row groups that a thread takes at once, for one opening of their file
Result = TypeVar("Result")


class ShardGroups(NamedTuple):
    """Some row groups of one shard."""

    shard: int
    path: Path
    groups: range


@dataclass(frozen=True)
class _Found:
    """The sentences with uses in one row group."""

    places: Integers
    """(S, 3): shard, row group, row."""
    words: TextColumn
    """All words of these sentences."""
    lengths: Integers
    columns: dict[str, TextColumn]
    rows: Integers
    """(N,): of each use, the number of its sentence among these."""
    spans: Integers
    """(N, 2)"""


def search(
    corpus: Corpus,
    terms: Sequence[Term],
    where: Condition,
    *,
    threads: int,
    parts: Sequence[ShardGroups] | None = None,
) -> tuple[SentenceTable, Integers, Integers]:
    """The sentences that have uses, and each use's sentence and span, in the corpus's order.

    `parts`: only in these row groups.
    """
    work = partial(_search_part, terms, where, (DOCUMENT, *corpus.config.meta))
    found: list[_Found] = []
    count = 0
    for results in in_threads(work, all_groups(corpus) if parts is None else parts, threads):
        found += results
        count += sum(len(each.rows) for each in results)
        check_uses(count, MAX_USES)
    return _joined(found, corpus)


def all_groups(corpus: Corpus) -> list[ShardGroups]:
    """Every row group of the corpus, some at a time."""
    parts = []
    for number, shard in enumerate(corpus.shards):
        with damage_explained(words_of(shard)):
            groups = range(len(ShardWords(words_of(shard))))
        begins = groups[::_TOGETHER]
        parts += [ShardGroups(number, shard, groups[begin:][:_TOGETHER]) for begin in begins]
    return parts


def in_threads(
    work: Callable[[ShardGroups], Result], parts: Sequence[ShardGroups], threads: int
) -> Iterator[Result]:
    """What the work makes of each part, in order. After an error, no other part is begun."""
    pool = ThreadPoolExecutor(max(1, threads))
    try:
        yield from pool.map(work, parts)
    finally:
        pool.shutdown(cancel_futures=True)


def read_columns(reader: ParquetReader, group: int, names: Sequence[str]) -> dict[str, TextColumn]:
    """Columns of text of a row group."""
    table = reader.read_group(group)
    return {name: TextColumn.from_arrow(table[name].chunks) for name in names}


class CorpusColumns(Mapping[str, ColumnValues]):
    """The columns of a corpus with all values of each, which are read when they are asked for."""

    def __init__(self, corpus: Corpus, *, threads: int = 2) -> None:
        self._corpus, self._threads = corpus, threads
        self._values: dict[str, ColumnValues] = {}

    def __iter__(self) -> Iterator[str]:
        return iter((DOCUMENT, *self._corpus.config.meta))

    def __len__(self) -> int:
        return 1 + len(self._corpus.config.meta)

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def __getitem__(self, name: str) -> ColumnValues:
        if name not in self:
            raise KeyError(name)
        if name not in self._values:
            parts = in_threads(partial(_values_of, name), all_groups(self._corpus), self._threads)
            self._values[name] = ColumnValues(set().union(*parts))
        return self._values[name]


def _values_of(name: str, part: ShardGroups) -> set[str]:
    found: set[str] = set()
    with damage_explained(part.path), ParquetReader(part.path, [name]) as reader:
        for group in part.groups:
            found.update(read_columns(reader, group, [name])[name].values)
    return found


@dataclass(frozen=True)
class _RowGroup:
    """A row group in memory, its words as numbers."""

    place: tuple[int, int]
    """Shard and row group."""
    words: GroupWords

    def uses_of(self, terms: Sequence[Term]) -> Integers:
        """(N, 3): row of the sentence, and the use's first word there and the one after its last.

        In order, each once; uses may overlap.
        """
        found = [self._uses_of(term) for term in terms]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found), axis=0)

    def _uses_of(self, term: Term) -> Integers:
        wanted = [self.words.find(spellings) for spellings in term]
        if not all(wanted):  # without reading the words
            return np.empty((0, 3), np.int64)
        codes, offsets = self.words.codes, self.words.offsets
        begins = np.flatnonzero(_is_one_of(codes, wanted[0]))
        rows = np.searchsorted(offsets, begins, side="right") - 1
        fits = begins + len(term) <= offsets[rows + 1]  # a term does not cross sentences
        begins, rows = begins[fits], rows[fits]
        for distance, numbers in enumerate(wanted[1:], start=1):
            fits = np.isin(codes[begins + distance], numbers)
            begins, rows = begins[fits], rows[fits]
        begins = begins - offsets[rows]
        return np.stack([rows, begins, begins + len(term)], axis=1)

    def keep(self, uses: Integers, columns: dict[str, TextColumn]) -> _Found:
        """The sentences of these uses."""
        rows, numbers = np.unique(uses[:, 0], return_inverse=True)
        offsets = self.words.offsets
        lengths = offsets[rows + 1] - offsets[rows]
        places = [np.full(len(rows), number) for number in self.place]
        # Each sentence's words one after another: where it begins, and how far into it.
        begins = np.repeat(offsets[rows] - (np.cumsum(lengths) - lengths), lengths)
        used, codes = np.unique(
            self.words.codes[begins + np.arange(len(begins))], return_inverse=True
        )
        return _Found(
            places=np.stack([*places, rows], axis=1),
            words=TextColumn(self.words.spell(used), codes.astype(np.int32)),
            lengths=lengths,
            columns={name: column.select(rows) for name, column in columns.items()},
            rows=numbers,
            spans=uses[:, 1:],
        )


def _is_one_of(codes: npt.NDArray[Any], numbers: list[int]) -> npt.NDArray[np.bool_]:
    if len(numbers) > 8:
        return np.isin(codes, numbers)
    # Comparing all codes with one is ten times as fast as looking each of them up.
    found: npt.NDArray[np.bool_] = codes == numbers[0]
    for number in numbers[1:]:
        found |= codes == number
    return found


def _search_part(
    terms: Sequence[Term],
    where: Condition,
    columns: Sequence[str],
    part: ShardGroups,
) -> list[_Found]:
    with damage_explained(words_of(part.path)):
        words = ShardWords(words_of(part.path))
        groups = [_RowGroup((part.shard, number), words[number]) for number in part.groups]
        found = [(group, uses) for group in groups if len(uses := group.uses_of(terms))]
    if not found:
        return []
    kept = []
    with damage_explained(part.path), ParquetReader(part.path, list(columns)) as metadata:
        for group, uses in found:
            values = read_columns(metadata, group.place[1], columns)
            accepted = rows_meeting(where, values)
            if len(accepted) != len(group.words.offsets) - 1:
                raise ValueError("it has other sentences than the words beside it")
            if (is_kept := accepted[uses[:, 0]]).any():
                kept.append(group.keep(uses[is_kept], values))
    return kept


def _joined(found: Sequence[_Found], corpus: Corpus) -> tuple[SentenceTable, Integers, Integers]:
    """What was found in all row groups, as one."""
    sizes = np.cumsum([0, *(len(each.places) for each in found)])
    no_rows, no_spans = np.empty(0, np.int64), np.empty((0, 2), np.int64)
    lengths = np.concatenate([no_rows, *(each.lengths for each in found)])
    table = SentenceTable(
        words=TextColumn.joined([each.words for each in found]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        columns={
            name: TextColumn.joined([each.columns[name] for each in found])
            for name in (DOCUMENT, *corpus.config.meta)
        },
        shards=corpus.shards,
        places=np.concatenate([np.empty((0, 3), np.int64), *(each.places for each in found)]),
    )
    rows = [each.rows + before for each, before in zip(found, sizes, strict=False)]
    spans = np.concatenate([no_spans, *(each.spans for each in found)])
    return table, np.concatenate([no_rows, *rows]), spans
