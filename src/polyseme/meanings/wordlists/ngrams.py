"""A corpus in, its most frequent sequences of n words out; or those with a word in them.

There are too many distinct n-grams to keep a count of each, so they are counted three times. First
each n-gram's hash adds one to a table of fixed size, in which several n-grams share a place: no
count there is too low. Then only n-grams at the highest places are counted by themselves, which is
exact for all that occur as often as the lowest of these places. Last, those that are listed are
spelled and counted in each document. Memory grows with distinct words and documents, not with
n-grams.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import InputError
from polyseme.meanings.concordance.conditions import Condition, parse_where
from polyseme.meanings.concordance.export import Cell, Tabular, objects
from polyseme.meanings.concordance.search import (
    CorpusColumns,
    ShardGroups,
    all_groups,
    in_threads,
)
from polyseme.meanings.concordance.sentence_table import (
    DOCUMENT,
    SPLITMIX,
    Hashes,
    Integers,
    mixed,
)
from polyseme.meanings.settings import NgramListConfig
from polyseme.meanings.wordlists.collocates import Find, NamedUses
from polyseme.meanings.wordlists.counting import (
    CountedGroup,
    DocumentPairs,
    InSentences,
    Mask,
    RowGroup,
    Selection,
    Unit,
    columns_read,
    is_readable,
    read_row_groups,
)
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus

_SHOWN = 20  # in a notebook
_PLACES = 1 << 24  # of the table of hashes: 64 MB
_COUNTED = 1 << 20  # of them, those whose n-grams are counted by themselves: some 100 MB
_MERGED = 1 << 22  # counts in hand before equal n-grams are added up
Result = TypeVar("Result")


@dataclass(frozen=True)
class ListedNgram:
    """An n-gram with its figures."""

    ngram: str
    """Its words, with spaces between."""
    count: int
    per_million: float
    """Of the words that were searched."""
    documents: int
    dp: float
    """How evenly it is spread over documents: Gries's DP, 0 to 1."""


@dataclass(frozen=True)
class NgramList(Tabular, Sequence[ListedNgram]):
    """N-grams, the most frequent first."""

    title: str
    ngrams: tuple[ListedNgram, ...]
    num_found: int
    """How many distinct ones occur `at_least` so often."""
    at_least: int
    """What was asked for; in large corpora more, below which n-grams were not counted."""
    total: int
    """How many n-grams there are, repeated ones included."""
    num_words: int
    """How many words were searched, punctuation included."""

    def __len__(self) -> int:
        return len(self.ngrams)

    @overload
    def __getitem__(self, index: int) -> ListedNgram: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ListedNgram, ...]: ...
    def __getitem__(self, index: int | slice) -> ListedNgram | tuple[ListedNgram, ...]:
        return self.ngrams[index]

    @property
    def columns(self) -> list[str]:
        """Of the table."""
        return [each.name for each in fields(ListedNgram)]

    def rows(self) -> Iterator[list[Cell]]:
        """Of the table, in the order of the list."""
        return ([*astuple(each)] for each in self.ngrams)

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each n-gram."""
        return objects(self)

    def __repr__(self) -> str:
        first = ", ".join(each.ngram for each in self.ngrams[:5])
        return summary(self.title, counted(self.num_found, "n-gram"), f"first: {first}")

    def _repr_html_(self) -> str:
        title = f"{self.title}: {min(len(self), _SHOWN)} of {self.num_found:,}"
        return html_table(title, [*self.rows()][:_SHOWN], self.columns)


def ngrams(
    corpus: Corpus,
    of: NamedUses | None,
    config: NgramListConfig,
    *,
    where: str | Condition | Sequence[str] = (),
    case_sensitive: bool = False,
    progress: Progress = SILENT,
) -> NgramList:
    """The most frequent n-grams of a corpus, of the sentences that meet a condition, or only those
    with such a use in them. None has punctuation in it, or crosses sentences."""
    condition = parse_where(where, CorpusColumns(corpus))
    unit = Unit(config.attribute, config.upos, case_sensitive)
    selection = Selection(corpus, InSentences(condition), columns_read(condition), unit)
    reading = _Reading(selection, of and of.find, config.size, progress)
    sketch, num_words = reading.sketch()
    at_least = _lowest_counted(sketch, config.min_frequency)
    keys, counts = reading.count(sketch, at_least)
    kept = counts >= at_least
    keys, counts = keys[kept], counts[kept]
    if not len(keys) and not num_words:
        raise InputError(f"{corpus.folder} has no sentences that meet --where.")
    # Equal ones by their hash for now: the last of them are as good as those that are cut.
    order = np.lexsort((keys, -counts))[: config.top]
    spellings, spread = reading.spell(keys[order])
    found = sorted(
        (
            ListedNgram(text, count, 1e6 * count / max(1, num_words), documents, dp)
            for text, count, documents, dp in zip(
                spellings, counts[order].tolist(), *spread, strict=True
            )
        ),
        key=lambda each: (-each.count, each.ngram),
    )
    what = f"{config.size}-grams" + (f" with {of.name}" if of else "")
    total = int(sketch.sum())
    return NgramList(what, tuple(found), len(keys), at_least, total, num_words)


def _lowest_counted(sketch: npt.NDArray[np.uint32], at_least: int) -> int:
    """From which count on n-grams can be counted by themselves."""
    if np.count_nonzero(sketch >= at_least) <= _COUNTED:
        return at_least
    return max(at_least, int(np.partition(sketch, -_COUNTED)[-_COUNTED]) + 1)


@dataclass(frozen=True)
class _Reading:
    """Reads all n-grams of a corpus, again and again."""

    selection: Selection
    find: Find | None
    size: int
    progress: Progress

    def sketch(self) -> tuple[npt.NDArray[np.uint32], int]:
        """For each hash modulo `_PLACES` how many n-grams have it; and the number of words."""
        table, words, lock = np.zeros(_PLACES, np.uint32), 0, threading.Lock()

        def add(keys: Hashes, _: Integers, group: CountedGroup) -> int:
            places, counts = np.unique(keys & np.uint64(_PLACES - 1), return_counts=True)
            with lock:
                table[places] += counts.astype(np.uint32)
            return int(group.target.sum())

        for counts in self._read("Counting n-grams", add, self.selection.columns):
            words += sum(counts)
        return table, words

    def count(self, sketch: npt.NDArray[np.uint32], at_least: int) -> tuple[Hashes, Integers]:
        """The hashes of n-grams that may occur so often, and their counts."""
        is_high = sketch >= at_least

        def count(keys: Hashes, _: Integers, __: CountedGroup) -> tuple[Hashes, Integers]:
            high = keys[is_high[keys & np.uint64(_PLACES - 1)]]
            return np.unique(high, return_counts=True)

        found = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
        for each in self._read("Counting the frequent ones", count, self.selection.columns):
            found += each
            if sum(len(keys) for keys, _ in found) > _MERGED + len(found[0][0]):
                found = [_merged(found)]
        return _merged(found)

    def spell(self, keys: Hashes) -> tuple[list[str], tuple[list[int], list[float]]]:
        """The words of these n-grams; in how many documents each is, and DP."""
        order = np.argsort(keys)
        ordered, words = keys[order], [""] * len(keys)
        pairs = DocumentPairs()

        def find(
            found: Hashes, begins: Integers, group: CountedGroup
        ) -> tuple[list[tuple[int, str]], tuple[list[str], Any, Any]]:
            at = np.searchsorted(ordered, found).clip(max=len(ordered) - 1)
            is_listed = ordered[at] == found
            numbers, begins = order[at[is_listed]], begins[is_listed]
            firsts = np.unique(numbers, return_index=True)
            spelled = [
                (number, " ".join(group.spellings.take(codes).to_pylist()))
                for number, codes in zip(
                    firsts[0].tolist(),
                    group.codes[begins[firsts[1]][:, None] + np.arange(self.size)],
                    strict=True,
                )
            ]
            return spelled, group.documents_of(numbers, begins)

        for each in self._read("Counting documents", find, self.selection.columns | {DOCUMENT}):
            for spelled, counts in each:
                for number, text in spelled:
                    words[number] = text
                pairs.add(*counts)
        spread = pairs.joined().spread(np.ones(len(keys), np.bool_))
        return words, (spread.num_documents.tolist(), spread.dp.tolist())

    def _read(
        self,
        told: str,
        work: Callable[[Hashes, Integers, CountedGroup], Result],
        columns: frozenset[str],
    ) -> Iterator[list[Result]]:
        """What the work makes of each row group's n-grams: their hashes, where they begin."""
        self.selection.unit.check(self.selection.corpus)
        parts = all_groups(self.selection.corpus)
        self.progress.start(told, len(parts))
        of_part = partial(self._read_part, work, columns)
        for done, found in enumerate(in_threads(of_part, parts), start=1):
            yield found
            self.progress.update(done)

    def _read_part(
        self,
        work: Callable[[Hashes, Integers, CountedGroup], Result],
        columns: frozenset[str],
        part: ShardGroups,
    ) -> list[Result]:
        return [
            work(*self._ngrams(group), group)
            for group in read_row_groups(self.selection, part, columns)
        ]

    def _ngrams(self, group: CountedGroup) -> tuple[Hashes, Integers]:
        """The hashes of all n-grams of a row group, and where each begins."""
        begins = np.flatnonzero(self._begins(group))
        hashes = hash_words(group.spellings)
        keys = np.zeros(len(begins), np.uint64)
        for place in range(self.size):
            here = mixed(hashes + np.uint64(place * SPLITMIX % (1 << 64)))
            keys += here[group.codes[begins + place]]
        return mixed(keys), begins

    def _begins(self, group: CountedGroup) -> Mask:
        """(T,) whether an n-gram begins here: words of one sentence, none of them punctuation."""
        size, codes = self.size, group.codes
        fits = group.target & np.append(is_readable(group.spellings), False)[codes]
        sums = np.concatenate([[0], np.cumsum(fits, dtype=np.int32)])
        found = np.zeros(len(codes), np.bool_)
        last = len(codes) - size + 1
        if last <= 0:
            return found
        rows = np.repeat(
            np.arange(len(group.words.offsets) - 1, dtype=np.int32), np.diff(group.words.offsets)
        )
        found[:last] = (sums[size:] - sums[:-size] == size) & (rows[:last] == rows[size - 1 :])
        if self.find is not None:
            found &= self._has_use(group)
        return found

    def _has_use(self, group: CountedGroup) -> Mask:
        assert self.find is not None
        row, begins, ends = self.find(RowGroup(group.place, group.words, group.columns)).T
        begins, ends = (group.words.offsets[row] + each for each in (begins, ends))
        fits = ends - begins <= self.size
        change = np.zeros(len(group.codes) + 1, np.int32)
        np.add.at(change, np.maximum(0, ends[fits] - self.size), 1)
        np.add.at(change, begins[fits] + 1, -1)
        return np.cumsum(change)[:-1] > 0


def _merged(found: Sequence[tuple[Hashes, Integers]]) -> tuple[Hashes, Integers]:
    keys, counts = (np.concatenate([each[n] for each in found]) for n in range(2))
    distinct, inverse = np.unique(keys, return_inverse=True)
    return distinct, np.bincount(inverse, counts, len(distinct)).astype(np.int64)


def hash_words(words: Any) -> Hashes:
    """(W,) a number for each word of an Arrow array, by its spelling."""
    bounds = np.frombuffer(words.buffers()[1], np.int32)[words.offset :][: len(words) + 1]
    text = np.frombuffer(words.buffers()[2] or b"", np.uint8)[bounds[0] : bounds[-1]]
    lengths = np.diff(bounds)
    places = np.arange(len(text)) - np.repeat(bounds[:-1] - bounds[0], lengths)
    each = mixed(text.astype(np.uint64) + (places.astype(np.uint64) << np.uint64(8)))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each)])[bounds - bounds[0]]
    return mixed(np.diff(sums))
