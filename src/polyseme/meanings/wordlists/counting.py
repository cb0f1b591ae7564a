"""Part of a corpus against another in, how often each word is in either out.

    in   a corpus, and which words of each row group belong to the target and to the reference
    out  `WordCounts`: every word with both counts; `count_documents`: of some words, those of each
         document

Words are counted as the numbers that a row group has for them, and spelled once for each row group.
What is counted may also be a word attribute, such as the lemma. Memory grows with the distinct
words of the corpus, not with its length.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.errors import ConfigError
from polyseme.meanings.concordance.conditions import EVERYTHING, Condition, columns_of, rows_meeting
from polyseme.meanings.concordance.search import ShardGroups, all_groups, in_threads, read_columns
from polyseme.meanings.concordance.sentence_table import DOCUMENT, Integers, TextColumn
from polyseme.meanings.wordlists.measures import Contingency, DocumentCounts, Floats
from polyseme.progress import SILENT, Progress
from polyseme.storage.parquet import ParquetReader, read_batches
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.settings import ADDED_ATTRIBUTES
from polyseme.text.shards import GroupWords, ShardWords

Mask = npt.NDArray[np.bool_]
UPOS = "upos"
_DENSE = 1 << 16  # words times documents that are counted in a table
_READABLE = r"[\p{L}\p{N}]"
"""What a word that is listed has at least one of: punctuation is counted, and not listed."""


class RowGroup(NamedTuple):
    """What there is to choose words by."""

    place: tuple[int, int]
    """Number of the shard, and of the row group in it."""
    words: GroupWords
    columns: Mapping[str, TextColumn]


class Chosen(NamedTuple):
    """Which words of a row group belong to the target and to the reference, and to neither."""

    target: Mask  # (T,)
    reference: Mask  # (T,)
    uses: int = 0
    """How many uses of a word the target is around."""
    sentences: tuple[Mask, Mask] | None = None
    """(S,) each: the sentences of the target and of the reference, where they are whole ones."""


@dataclass(frozen=True)
class Unit:
    """What is counted."""

    attribute: str | None = None
    """The values of this word attribute, such as `lemma`, in the place of words."""
    upos: tuple[str, ...] = ()
    """Only words of these parts of speech."""
    is_case_sensitive: bool = False

    def check(self, corpus: Corpus) -> None:
        """Refuse attributes that the corpus does not have."""
        for name in (*([self.attribute] if self.attribute else ()), *([UPOS] if self.upos else ())):
            if name not in corpus.config.attributes:
                have = ", ".join(corpus.config.attributes) or "none"
                added = f"--annotate {name}, or if they have it, with "
                raise ConfigError(
                    f"{corpus.folder} has no word attribute {name!r}; it has: {have}. Prepare the "
                    f"texts with {added * (name in ADDED_ATTRIBUTES)}--word-attributes {name}."
                )


@dataclass(frozen=True)
class Selection:
    """Which words of a corpus are counted, and compared with which others."""

    corpus: Corpus
    choose: Callable[[RowGroup], Chosen]
    columns: frozenset[str] = frozenset()
    """The metadata that `choose` reads."""
    unit: Unit = Unit()
    """What is counted."""
    has_rest: bool = False
    """Whether the reference is all that is not in the target, but for the uses themselves."""

    @property
    def is_in_vocabulary(self) -> bool:
        """Whether the corpus's vocabulary tells target and reference together."""
        return self.has_rest and self.unit.attribute is None and not self.unit.upos


@dataclass(frozen=True)
class WordCounts:
    """Every word that can be read, with its counts in the target and in the reference."""

    words: Any  # pa.Array
    target: Integers  # (W,)
    reference: Integers  # (W,)
    target_size: int  # all words, punctuation included
    reference_size: int
    uses: int

    def __len__(self) -> int:
        return len(self.target)

    def table(self) -> Contingency:
        """As what the measures take."""
        counts = self.target.astype(np.float64), self.reference.astype(np.float64)
        return Contingency(*counts, self.target_size, self.reference_size)

    def select(self, numbers: npt.NDArray[Any]) -> "WordCounts":
        """These words, in this order."""
        target, reference = self.target[numbers], self.reference[numbers]
        sizes = self.target_size, self.reference_size
        return WordCounts(self.words.take(pa.array(numbers)), target, reference, *sizes, self.uses)


def count_words(selection: Selection, progress: Progress = SILENT) -> WordCounts:
    """Count all words of the target and of the reference."""
    selection.unit.check(selection.corpus)
    parts = all_groups(selection.corpus)
    progress.start("Counting words", len(parts))
    tables, sizes = [], np.zeros(3, np.int64)
    work = partial(_count_part, selection)
    for done, (table, counted) in enumerate(in_threads(work, parts), start=1):
        tables.append(table)
        sizes += counted
        progress.update(done)
    found = _summed(pa.concat_tables(tables)) if tables else _summed(_SCHEMA.empty_table())
    if selection.is_in_vocabulary:
        with damage_explained(selection.corpus.vocabulary):
            found = _with_rest(found, selection)
    found = found.filter(pa.array(is_readable(found["word"]))).combine_chunks()
    counts = (found[name].to_numpy() for name in ("target", "reference"))
    return WordCounts(found["word"].combine_chunks(), *counts, *sizes.tolist())


def is_readable(words: Any) -> Mask:
    """(W,) which of these are words, and not punctuation."""
    found: Mask = pc.match_substring_regex(words, _READABLE).to_numpy(zero_copy_only=False)
    return found


_SCHEMA = pa.schema([("word", pa.string()), ("target", pa.int64()), ("reference", pa.int64())])


def _summed(table: Any) -> Any:
    """Each word once. A table's own way of grouping takes five times as long."""
    words = table["word"].combine_chunks().dictionary_encode()
    codes, num = words.indices.to_numpy(), len(words.dictionary)
    sums = [np.bincount(codes, table[name].to_numpy(), num) for name in _SCHEMA.names[1:]]
    columns = [words.dictionary, *(pa.array(each.astype(np.int64)) for each in sums)]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _with_rest(found: Any, selection: Selection) -> Any:
    """Of words in the target and in neither, those in the target and in the reference.

    Most words are in the reference. The vocabulary has counted them already.
    """
    batches = list(read_batches(selection.corpus.vocabulary, ["word", "count"], 1 << 16))
    words, totals = (pa.concat_arrays([each[n] for each in batches]) for n in ("word", "count"))
    if not selection.unit.is_case_sensitive:
        words = pc.utf8_lower(words)
    counts = totals.cast(pa.int64())
    every = _summed(pa.Table.from_arrays([words, counts, counts], schema=_SCHEMA))
    places = pc.index_in(found["word"], value_set=every["word"].combine_chunks())
    if places.null_count:
        raise ValueError("it does not have all words of the corpus")
    sides = np.zeros((2, len(every)), np.int64)
    for side, name in zip(sides, ("target", "reference"), strict=True):
        side[places.to_numpy()] = found[name].to_numpy()
    rest = every["target"].to_numpy() - sides.sum(axis=0)
    columns = [every["word"], pa.array(sides[0]), pa.array(rest)]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _count_part(selection: Selection, part: ShardGroups) -> tuple[Any, Integers]:
    """The words of the target and of the reference; or, if the reference is the rest, of neither:
    these are few."""
    tables, sizes = [_SCHEMA.empty_table()], np.zeros(3, np.int64)
    for group in read_row_groups(selection, part, selection.columns):
        sides = [group.target, group.reference]
        sizes += [*(int(np.count_nonzero(side)) for side in sides), group.uses]
        if selection.is_in_vocabulary:
            sides[1] = ~(group.target | group.reference)
        num = len(group.distinct)
        counts = [np.bincount(group.codes[side], minlength=num) for side in sides]
        used = np.flatnonzero(counts[0] + counts[1])
        columns = [group.spell(used), *(pa.array(each[used]) for each in counts)]
        tables.append(pa.Table.from_arrays(columns, schema=_SCHEMA))
    return _summed(pa.concat_tables(tables)), sizes


@dataclass(frozen=True)
class CountedGroup:
    """What is counted of a row group."""

    distinct: Any  # pa.Array, of each code
    codes: npt.NDArray[Any]  # (T,)
    is_case_sensitive: bool
    target: Mask
    reference: Mask
    uses: int
    sentences: tuple[Mask, Mask] | None
    place: tuple[int, int]
    words: GroupWords
    columns: Mapping[str, TextColumn]

    def spell(self, codes: Integers) -> Any:
        """What words of these codes are counted as; several codes may be one."""
        found = self.distinct.take(pa.array(codes))
        return found if self.is_case_sensitive else pc.utf8_lower(found)

    @cached_property
    def spellings(self) -> Any:
        """Those of all codes."""
        return self.distinct if self.is_case_sensitive else pc.utf8_lower(self.distinct)

    def documents_of(self, numbers: Integers, places: Integers) -> "GroupCounts":
        """How often each of some things is in each document. `numbers`: which it is at each of
        these places."""
        column = self.columns[DOCUMENT]
        num, lengths = len(column.values), np.diff(self.words.offsets)
        sides = self.target, self.reference
        documents = np.repeat(column.codes, lengths)[places]
        keys = numbers.astype(np.int64) * num + documents
        num_keys = num * int(numbers.max(initial=-1) + 1)
        if num_keys < _DENSE + 4 * len(keys):  # counting is much quicker than sorting
            tables = [np.bincount(keys[side[places]], minlength=num_keys) for side in sides]
            pairs = np.flatnonzero(tables[0] + tables[1])
            counts = [each[pairs].astype(np.float64) for each in tables]
        else:
            pairs, inverse = np.unique(keys, return_inverse=True)
            counts = [_sums(inverse, side[places], len(pairs)) for side in sides]
        sizes = [_sums(column.codes, each, num) for each in self._sizes(lengths)]
        own, at = pairs // max(1, num), pairs % max(1, num)
        return column.values, (sizes[0], sizes[1]), (own, at, counts[0], counts[1])

    def _sizes(self, lengths: Integers) -> list[Integers]:
        """(S,) each: how many words of each sentence are in the target, and in the reference."""
        if self.sentences is not None:
            return [lengths * chosen for chosen in self.sentences]
        return [self._words_of(side, lengths) for side in (self.target, self.reference)]

    def _words_of(self, side: Mask, lengths: Integers) -> Integers:
        offsets = self.words.offsets
        is_most = 2 * np.count_nonzero(side) > len(side)
        others = np.flatnonzero(~side if is_most else side)
        if 8 * len(others) > len(side):
            sums = np.concatenate([[0], np.cumsum(side, dtype=np.int32)])
            return np.diff(sums[offsets])
        # Few words are looked up sooner than all are added up.
        rows = np.searchsorted(offsets, others, side="right") - 1
        found = np.bincount(rows, minlength=len(lengths))
        return lengths - found if is_most else found


def read_row_groups(
    selection: Selection, part: ShardGroups, columns: frozenset[str]
) -> Iterator[CountedGroup]:
    """What is counted of each row group of a part, with these columns of metadata."""
    names = sorted(columns)
    with damage_explained(words_of(part.path)):
        shard = ShardWords(words_of(part.path))
    # Metadata is in Parquet; that is not opened where nothing of it is asked for.
    reader = ParquetReader(part.path, names) if names else None
    try:
        for number in part.groups:
            with damage_explained(part.path):
                words = shard[number]
                values = {} if reader is None else read_columns(reader, number, names)
                group = RowGroup((part.shard, number), words, values)
                yield _counted(selection.unit, group, selection.choose(group))
    finally:
        if reader is not None:
            reader.__exit__(None, None, None)


def _counted(unit: Unit, group: RowGroup, chosen: Chosen) -> CountedGroup:
    words = group.words if unit.attribute is None else group.words.attribute(unit.attribute)
    codes = words.codes
    target, reference, uses, sentences = chosen
    if unit.attribute is not None:
        has_value = np.isin(codes, words.find([""]), invert=True)
        target, reference, sentences = target & has_value, reference & has_value, None
    if unit.upos:
        tags = group.words.attribute(UPOS)
        is_wanted = np.isin(tags.codes, tags.find(unit.upos))
        target, reference, sentences = target & is_wanted, reference & is_wanted, None
    how = unit.is_case_sensitive
    return CountedGroup(words.to_arrow(), codes, how, target, reference, uses, sentences, *group)


def count_documents(
    selection: Selection,
    words: Any,
    progress: Progress = SILENT,
) -> DocumentCounts:
    """Count some words, of the array that `count_words` gave, in each document."""
    parts = all_groups(selection.corpus)
    progress.start("Counting documents", len(parts))
    pairs = DocumentPairs()
    work = partial(_count_part_documents, selection, words)
    for done, groups in enumerate(in_threads(work, parts), start=1):
        for each in groups:
            pairs.add(*each)
        progress.update(done)
    return pairs.joined()


GroupCounts = tuple[list[str], tuple[Floats, Floats], tuple[Integers, Integers, Floats, Floats]]
"""The documents of a row group; their sizes on both sides; which thing in which of them how often
on either side."""


class DocumentPairs:
    """Counts by document, added up over row groups; a document may lie in two."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sizes: list[tuple[Integers, Floats, Floats]] = []
        self._found: list[tuple[Integers, Integers, Floats, Floats]] = []

    def add(
        self,
        names: Sequence[str],
        sizes: tuple[Floats, Floats],
        found: tuple[Integers, Integers, Floats, Floats],
    ) -> None:
        """Those of a row group."""
        new = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        numbers = np.array(new, np.int64)
        own, documents, *counts = found
        self._sizes.append((numbers, *sizes))
        self._found.append((own, numbers[documents], counts[0], counts[1]))

    def joined(self) -> DocumentCounts:
        """Those of all."""
        num = len(self._numbers)
        own, documents, *counts = (
            _concatenated([each[n] for each in self._found]) for n in range(4)
        )
        per = max(1, num)
        pairs, places = np.unique(own.astype(np.int64) * per + documents, return_inverse=True)
        owners, *totals = (_concatenated([each[n] for each in self._sizes]) for n in range(3))
        return DocumentCounts(
            pairs // per,
            pairs % per,
            *(_sums(places, each, len(pairs)) for each in counts),
            *(_sums(owners.astype(np.int64), each, num) for each in totals),
        )


def _concatenated(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0)


def _sums(places: npt.NDArray[Any], values: npt.NDArray[Any], size: int) -> Floats:
    """(size,) the sum of the values at each place."""
    return np.bincount(places, values, minlength=size).astype(np.float64)


def _count_part_documents(selection: Selection, words: Any, part: ShardGroups) -> list[GroupCounts]:
    found = []
    for group in read_row_groups(selection, part, selection.columns | {DOCUMENT}):
        wanted = pc.index_in(group.spellings, value_set=words).fill_null(-1).to_numpy()
        places = np.flatnonzero((wanted >= 0)[group.codes] & (group.target | group.reference))
        found.append(group.documents_of(wanted[group.codes[places]], places))
    return found


def columns_read(condition: Condition) -> frozenset[str]:
    """What a condition needs to be held against."""
    is_any = condition == EVERYTHING
    return frozenset() if is_any else frozenset({DOCUMENT, *columns_of(condition)})


@dataclass(frozen=True)
class InSentences:
    """The words of the sentences that meet a condition, against none."""

    where: Condition

    def __call__(self, group: RowGroup) -> Chosen:
        """Of a row group."""
        chosen = np.ones(len(group.words.codes), np.bool_)
        if self.where != EVERYTHING:
            chosen = sentences_chosen(rows_meeting(self.where, group.columns), group.words)
        return Chosen(chosen, np.zeros(len(chosen), np.bool_))


def sentences_chosen(accepted: Mask, words: GroupWords) -> Mask:
    """(T,) the words of these sentences."""
    offsets = words.offsets
    if len(accepted) != len(offsets) - 1:
        raise ValueError("it has other sentences than the words beside it")
    return np.repeat(accepted, np.diff(offsets))
