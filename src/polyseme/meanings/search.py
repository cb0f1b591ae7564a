"""Terms and conditions in, the sentences that have them out, from as few row groups as will do.

    in   a corpus, terms in its spellings, conditions on metadata
    out  a table of sentences; for each use its sentence and its words there

`word_counts` tells which row groups have the words. Of these, metadata is read first, and words
only where a sentence meets the conditions. Words stay numbers: a row group's dictionary is looked
up once, and only sentences that have a use are kept. Several threads read, as Arrow lets others
work meanwhile.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.meanings.query import Comparison, Term, accepted_by_all, check_uses
from polyseme.meanings.sentence_table import DOCUMENT, Codes, Integers, SentenceTable, TextColumn
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained
from polyseme.text.group_counts import find_row_groups

MAX_USES = 1_000_000
"""Some 200 MB."""
_TOGETHER = 4  # row groups that a thread takes at once, for one opening of their file
Result = TypeVar("Result")


class ShardGroups(NamedTuple):
    """Some row groups of one shard."""

    shard: int
    path: Path
    groups: list[int]


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
    corpus: Corpus, terms: Sequence[Term], comparisons: Sequence[Comparison], *, threads: int
) -> tuple[SentenceTable, Integers, Integers]:
    """The sentences that have uses, and each use's sentence and span, in the corpus's order."""
    parts = groups_with(corpus, terms)
    work = partial(_search_part, terms, comparisons, (DOCUMENT, *corpus.config.meta))
    found: list[_Found] = []
    count = 0
    for results in in_threads(work, parts, threads):
        found += results
        count += sum(len(each.rows) for each in results)
        check_uses(count, MAX_USES)
    return _joined(found, corpus)


def groups_with(corpus: Corpus, terms: Sequence[Term]) -> list[ShardGroups]:
    """The row groups that have all words of a term."""
    words = {word for term in terms for spellings in term for word in spellings}
    parts = []
    for number, (shard, counts) in enumerate(zip(corpus.shards, corpus.word_counts, strict=True)):
        there: dict[int, set[str]] = {}
        with damage_explained(counts):
            for word, group, _ in find_row_groups(counts, words) if words else ():
                there.setdefault(group, set()).add(word)
        groups = [
            group
            for group, has in sorted(there.items())
            if any(all(not has.isdisjoint(spellings) for spellings in term) for term in terms)
        ]
        parts += _in_parts(number, shard, groups)
    return parts


def all_groups(corpus: Corpus) -> list[ShardGroups]:
    """Every row group of the corpus."""
    parts = []
    for number, shard in enumerate(corpus.shards):
        with damage_explained(shard), ParquetReader(shard) as reader:
            parts += _in_parts(number, shard, list(range(reader.num_row_groups)))
    return parts


def _in_parts(number: int, shard: Path, groups: list[int]) -> list[ShardGroups]:
    begins = range(0, len(groups), _TOGETHER)
    return [ShardGroups(number, shard, groups[begin : begin + _TOGETHER]) for begin in begins]


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


def read_words(reader: ParquetReader, group: int) -> tuple[Any, Integers]:
    """The words of a row group as one dictionary array, and where each sentence begins."""
    lists = reader.read_group(group)["words"].chunks
    lengths = np.concatenate([np.diff(chunk.offsets.to_numpy()) for chunk in lists])
    words = pa.chunked_array([chunk.flatten() for chunk in lists])
    # Our own row groups are one chunk; joining several makes their dictionaries one.
    flat = words.chunk(0) if words.num_chunks == 1 else words.combine_chunks()
    if flat.null_count:
        raise ValueError("a sentence has a word that is none")
    return flat, np.concatenate([[0], np.cumsum(lengths)])


@dataclass(frozen=True)
class _RowGroup:
    """A row group in memory, its words as numbers."""

    place: tuple[int, int]
    """Shard and row group."""
    columns: dict[str, TextColumn]
    words: Any
    offsets: Integers

    def uses_of(self, terms: Sequence[Term]) -> Integers:
        """(N, 3): row of the sentence, and the use's first word there and the one after its last.

        In order, each once; uses may overlap.
        """
        found = [self._uses_of(term) for term in terms]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found), axis=0)

    def _uses_of(self, term: Term) -> Integers:
        codes = self.words.indices.to_numpy()
        first, *others = (self._is_one_of(spellings) for spellings in term)
        begins = np.flatnonzero(_is_in(codes, first))
        rows = np.searchsorted(self.offsets, begins, side="right") - 1
        fits = begins + len(term) <= self.offsets[rows + 1]  # a term does not cross sentences
        begins, rows = begins[fits], rows[fits]
        for distance, is_one in enumerate(others, start=1):
            fits = is_one[codes[begins + distance]]
            begins, rows = begins[fits], rows[fits]
        begins = begins - self.offsets[rows]
        return np.stack([rows, begins, begins + len(term)], axis=1)

    def _is_one_of(self, spellings: Collection[str]) -> Any:
        """For each word of the dictionary whether it is one of these."""
        wanted = pa.array(spellings, pa.string())
        return pc.is_in(self.words.dictionary, wanted).to_numpy(zero_copy_only=False)

    def keep(self, uses: Integers) -> _Found:
        """The sentences of these uses."""
        rows, numbers = np.unique(uses[:, 0], return_inverse=True)
        lengths = self.offsets[rows + 1] - self.offsets[rows]
        places = [np.full(len(rows), number) for number in self.place]
        # Each sentence's words one after another: where it begins, and how far into it.
        begins = np.repeat(self.offsets[rows] - (np.cumsum(lengths) - lengths), lengths)
        codes = self.words.indices.to_numpy()[begins + np.arange(len(begins))]
        used, codes = np.unique(codes, return_inverse=True)
        return _Found(
            places=np.stack([*places, rows], axis=1),
            words=TextColumn(self.words.dictionary.take(used).to_pylist(), codes.astype(np.int32)),
            lengths=lengths,
            columns={name: column.select(rows) for name, column in self.columns.items()},
            rows=numbers,
            spans=uses[:, 1:],
        )


def _is_in(codes: Codes, wanted: Any) -> Any:
    """Where a code is wanted, by a mask over all codes."""
    few = np.flatnonzero(wanted)
    if len(few) > 8:
        return wanted[codes]
    # Comparing all codes with one is ten times as fast as looking each of them up.
    return np.logical_or.reduce([codes == code for code in few.astype(codes.dtype)])


def _search_part(
    terms: Sequence[Term],
    comparisons: Sequence[Comparison],
    columns: Sequence[str],
    part: ShardGroups,
) -> list[_Found]:
    found = []
    with (
        damage_explained(part.path),
        ParquetReader(part.path, list(columns)) as metadata,
        ParquetReader(part.path, ["words"]) as words,
    ):
        for number in part.groups:
            values = read_columns(metadata, number, columns)
            accepted = accepted_by_all(comparisons, values)
            if not accepted.any():
                continue
            group = _RowGroup((part.shard, number), values, *read_words(words, number))
            uses = group.uses_of(terms)
            uses = uses[accepted[uses[:, 0]]]
            if len(uses):
                found.append(group.keep(uses))
    return found


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
