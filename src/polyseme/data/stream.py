"""An endless, shuffled, resumable stream of batches out of a corpus.

    in   a corpus, a vocabulary, a seed, a position
    out  batches, each with the position after it

Row groups are shuffled over the corpus, sentences within a window of some row groups, so memory
is bounded by the window. Sentences of like length come together, which leaves little padding.
Everything random is keyed by seed, epoch and window: a run that is resumed reads one window
again and sees the identical rest. Only the columns asked for are read, and words come as a
dictionary, so ids and characters are looked up once for each distinct word of a window.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from queue import Queue
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from polyseme.config import Settings
from polyseme.data.batch import (
    FIRST_ROW,
    Batch,
    Integers,
    Pairs,
    WordTable,
    pad,
    with_special_tokens,
)
from polyseme.data.vocabulary import Vocabulary
from polyseme.errors import CorpusError
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained

T = TypeVar("T")


@dataclass(frozen=True)
class _Ended:
    error: BaseException | None


def prefetch(stream: Iterator[T], depth: int = 4) -> Iterator[T]:
    """The same items, up to `depth` of them made beforehand. An error comes where it arose.

    Close the iterator, or let go of it, and the thread ends and closes the stream.
    """
    ready: Queue[T | _Ended] = Queue(depth)
    is_over = threading.Event()
    worker = threading.Thread(
        target=_fill, args=(stream, ready, is_over), name="prefetch", daemon=True
    )
    worker.start()
    try:
        while not isinstance(item := ready.get(), _Ended):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        is_over.set()
        # The worker may be waiting for room. Once there is, it puts one item at most and ends.
        while not ready.empty():
            ready.get_nowait()
        worker.join()


def _fill(stream: Iterator[T], ready: "Queue[T | _Ended]", is_over: threading.Event) -> None:
    error: BaseException | None = None
    try:
        for item in stream:
            ready.put(item)
            if is_over.is_set():
                break
    except BaseException as caught:  # noqa: BLE001  # raised again where the items are taken
        error = caught
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()
    if not is_over.is_set():
        ready.put(_Ended(error))


RowGroup = tuple[Path, int]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class CorpusWindow:
    """Sentences of one part, training or held out, in the order of their row groups."""

    table: WordTable
    flat: Codes
    """All sentences one after another, special tokens included, as rows of the table."""
    starts: Integers
    lengths: Integers
    """Where each sentence begins in `flat`, and how long it is, special tokens counted."""
    documents: Codes
    """A number for each sentence's document; empty unless asked for."""
    rows: Integers
    """Where each sentence stood. Only sentences of one document with rows r and r + 1 are
    neighbours; between two row groups a number is left out."""

    def single(self, sentences: Integers) -> Batch:
        """A batch of these sentences."""
        lengths = self.lengths[sentences]
        return self.table.batch(pad(self.flat, self.starts[sentences], lengths), lengths)

    def paired(self, first: Integers, second: Integers, follows: Integers) -> Batch:
        """A batch of pairs: <S> first </S> second </S>."""
        split = self.lengths[first]
        lengths = split + self.lengths[second] - 1  # the second has no <S>
        columns = np.arange(lengths.max(initial=0))
        is_real = columns < lengths[:, None]
        is_second = is_real & (columns >= split[:, None])
        begins = np.where(
            is_second, (self.starts[second] + 1 - split)[:, None], self.starts[first][:, None]
        )
        sources = np.where(is_real, begins + columns, 0)
        matrix = np.where(is_real, self.flat[sources], 0)
        return self.table.batch(matrix, lengths, Pairs(is_second.astype(np.int64), follows))


Rows = Integers | slice


@dataclass(frozen=True)
class PlannedBatch:
    """Which sentences make a batch, before it is built."""

    lengths: Integers
    """Of its rows, special tokens counted."""
    make: Callable[[Rows], Batch]

    def build(self, rows: Rows = slice(None)) -> Batch:  # a constant
        """The batch, or these rows of it as if they were one."""
        return self.make(rows)


def row_groups(shards: Sequence[Path]) -> list[RowGroup]:
    """Every row group of these shards, in order."""
    groups: list[RowGroup] = []
    for path in shards:
        with damage_explained(path), ParquetReader(path) as reader:
            groups += [(path, number) for number in range(reader.num_row_groups)]
    return groups


def read_window(
    groups: Sequence[RowGroup], vocabulary: Vocabulary, *, is_held_out: bool, with_documents: bool
) -> CorpusWindow:
    """The training or the held-out sentences of these row groups."""
    columns = ["words", "held_out", *(["document"] if with_documents else [])]
    tables = [_read(path, number, columns) for path, number in groups]
    lists = [chunk for table in tables for chunk in table["words"].chunks]
    sizes = np.concatenate([np.diff(chunk.offsets.to_numpy()) for chunk in lists])
    words = pa.chunked_array([chunk.flatten() for chunk in lists]).unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in words.chunks])
    parts = [table["held_out"].to_numpy() for table in tables]
    chosen = np.flatnonzero(np.concatenate(parts) == is_held_out)
    is_chosen_word = np.repeat(np.concatenate(parts) == is_held_out, sizes)
    table, codes = _look_up(codes[is_chosen_word], words.chunk(0).dictionary, vocabulary)
    lengths = sizes[chosen].astype(np.int64)
    documents = _documents(tables)[chosen] if with_documents else np.empty(0, np.int32)
    gaps = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    with_tokens = lengths + 2
    return CorpusWindow(
        table=table,
        flat=with_special_tokens(codes, lengths),
        starts=np.cumsum(with_tokens) - with_tokens,
        lengths=with_tokens,
        documents=documents,
        rows=(chosen + gaps[chosen]).astype(np.int64),
    )


def _look_up(codes: Codes, dictionary: Any, vocabulary: Vocabulary) -> tuple[WordTable, Codes]:
    """A table of the words that occur, and the codes as rows of it."""
    occurs = np.zeros(len(dictionary), np.bool_)
    occurs[codes] = True
    distinct = np.flatnonzero(occurs)
    rows = np.empty(len(dictionary), np.int32)
    rows[distinct] = np.arange(len(distinct)) + FIRST_ROW
    return vocabulary.table_of(dictionary.take(distinct)), rows[codes]


def _documents(tables: Sequence[Any]) -> Codes:
    """A number for the document of each sentence, the same in all tables."""
    chunks = [chunk for table in tables for chunk in table["document"].chunks]
    unified = pa.chunked_array(chunks).unify_dictionaries()
    return np.concatenate([chunk.indices.to_numpy() for chunk in unified.chunks])


def _read(path: Path, number: int, columns: list[str]) -> Any:
    with damage_explained(path), ParquetReader(path, columns) as reader:
        return reader.read_group(number)


def choose_partners(
    window: CorpusWindow, first: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """A second sentence for each first one, and 1 where it truly follows.

    Half of those with a successor in the window keep it; all others get a random sentence of
    another document (of any document, if the window holds just one).
    """
    successors = _successors(window)[first]
    keeps = (successors >= 0) & (random.random(len(first)) < 0.5)
    second = np.where(keeps, successors, _from_other_documents(window, first, random))
    return second, (second == successors).astype(np.int64)


def _successors(window: CorpusWindow) -> Integers:
    """For each sentence the one after it in its document, -1 if it is not in the window."""
    successors = np.full(len(window.rows), -1, np.int64)
    is_next = np.diff(window.rows) == 1
    is_next &= np.diff(window.documents) == 0
    successors[:-1][is_next] = np.flatnonzero(is_next) + 1
    return successors


def _from_other_documents(
    window: CorpusWindow, first: Integers, random: np.random.Generator
) -> Integers:
    """For each sentence one drawn evenly from all sentences of other documents."""
    by_document = np.argsort(window.documents, kind="stable")
    grouped = window.documents[by_document]
    mine = window.documents[first]
    begins = np.searchsorted(grouped, mine, side="left")
    sizes = np.searchsorted(grouped, mine, side="right") - begins
    sizes[sizes == len(grouped)] = 0  # no other document: draw from this one
    drawn = random.integers(0, len(grouped) - sizes)
    # Documents stand together here, so one's own is passed over by stepping across it.
    drawn += np.where(drawn >= begins, sizes, 0)
    drawn_from: Integers = by_document[drawn]
    return drawn_from


class BatchConfig(Settings):
    """How sentences are batched."""

    words: int = Field(default=4096, ge=1, le=10_000_000)
    """Maximum number of words per batch, including BOS and EOS, over all processes. A longer
    sentence is a batch of its own."""
    window: int = Field(default=4, ge=1, le=1_000_000)
    """Shuffle window: row groups of the corpus, of 10,000 sentences each, shuffled together."""


class SentenceStream:
    """Batches of the training sentences, epoch after epoch, each sentence once in an epoch.

    With `pairs`, each sentence is once the first of a pair.
    """

    def __init__(
        self,
        corpus: Corpus,
        vocabulary: Vocabulary,
        config: BatchConfig,
        *,
        seed: int,
        pairs: bool = False,
    ) -> None:
        self._corpus, self._vocabulary, self._config = corpus, vocabulary, config
        self._seed, self._pairs = seed, pairs
        if self._num_sentences == 0:
            raise CorpusError(
                f"All {corpus.read_stats['sentences']:,} sentences of {corpus.folder} are held "
                "out; none is left to train on. Prepare it with a smaller --held-out."
            )

    @property
    def _num_sentences(self) -> int:
        counts = self._corpus.read_stats
        return int(counts["sentences"] - counts["held_out_sentences"])

    @property
    def words_per_epoch(self) -> int:
        """Training words, BOS and EOS counted. With pairs: as many as are to be expected."""
        counts = self._corpus.read_stats
        words = int(counts["words"] - counts["held_out_words"])
        return _num_words(words, self._num_sentences, pairs=self._pairs)

    @cached_property
    def _groups(self) -> list[RowGroup]:
        return row_groups(self._corpus.shards)

    def __call__(self, position: Mapping[str, int]) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        """Batches from a position on, without end, each with the position after it."""
        return ((planned.build(), after) for planned, after in self.planned(position))

    def planned(
        self, position: Mapping[str, int]
    ) -> Iterator[tuple[PlannedBatch, Mapping[str, int]]]:
        """The same, not built yet."""
        epoch, number = position.get("epoch", 0), position.get("window", 0)
        skip = position.get("batch", 0)
        num_windows = -(-len(self._groups) // self._config.window)
        while True:
            for batch, batches_done, is_last in self._window(epoch, number, skip):
                after = {"epoch": epoch, "window": number, "batch": batches_done}
                if is_last:  # so that nobody reads a window only to find it finished
                    after = _next(epoch, number, num_windows)
                yield batch, after
            following = _next(epoch, number, num_windows)
            epoch, number, skip = following["epoch"], following["window"], 0

    def _window(
        self, epoch: int, number: int, skip: int
    ) -> Iterator[tuple[PlannedBatch, int, bool]]:
        """The batches of one window without the first `skip`, each with how many are done."""
        order = _random(self._seed, epoch).permutation(len(self._groups))
        begin = number * self._config.window
        groups = [self._groups[index] for index in order[begin : begin + self._config.window]]
        window = read_window(
            groups, self._vocabulary, is_held_out=False, with_documents=self._pairs
        )
        random = _random(self._seed, epoch, number + 1)
        first = random.permutation(len(window.lengths))
        makers = _Batches(window, first, self._config.words, random if self._pairs else None)
        order = random.permutation(len(makers))
        for done, index in enumerate(order[skip:], start=skip + 1):
            yield makers.planned(index), done, done == len(order)


def held_out(
    corpus: Corpus,
    vocabulary: Vocabulary,
    config: BatchConfig,
    *,
    limit_words: int | None,
    pairs: bool = False,
) -> Iterator[Batch]:
    """Batches of the held-out sentences, always the same ones in the same order.

    With a limit, about that many words (BOS and EOS counted) in sentences spread evenly over all of
    them. Every row group is read for it: keep the batches of a limited set rather than ask twice.
    """
    available = int(corpus.read_stats["held_out_sentences"])
    if not available:
        return
    words = _num_words(int(corpus.read_stats["held_out_words"]), available, pairs=pairs)
    wanted = available
    if limit_words is not None and limit_words < words:
        wanted = max(1, available * limit_words // words)
    groups = row_groups(corpus.shards)
    seen = 0
    for number, begin in enumerate(range(0, len(groups), config.window)):
        window = read_window(
            groups[begin : begin + config.window],
            vocabulary,
            is_held_out=True,
            with_documents=pairs,
        )
        numbers = np.arange(seen, seen + len(window.lengths))
        seen += len(numbers)
        chosen = np.flatnonzero((numbers + 1) * wanted // available > numbers * wanted // available)
        random = _random(0, 0, number + 1) if pairs else None
        makers = _Batches(window, chosen, config.words, random)
        yield from (makers.planned(index).build() for index in range(len(makers)))


class _Batches:
    """Sentences of a window, sorted by length and cut into batches that are built when asked."""

    def __init__(
        self, window: CorpusWindow, first: Integers, limit: int, random: np.random.Generator | None
    ) -> None:
        self._window = window
        lengths = window.lengths[first]
        self._second: Integers | None = None
        if random is not None:
            second, follows = choose_partners(window, first, random)
            lengths = lengths + window.lengths[second] - 1
        order = np.argsort(lengths, kind="stable")
        self._first = first[order]
        if random is not None:
            self._second, self._follows = second[order], follows[order]
        self._lengths = lengths[order]
        self._cuts = _cut(self._lengths, limit)

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def planned(self, index: int) -> PlannedBatch:
        part = slice(self._cuts[index], self._cuts[index + 1])
        return PlannedBatch(self._lengths[part], partial(self._build, part))

    def _build(self, part: slice, rows: Rows) -> Batch:
        first = self._first[part][rows]
        if self._second is None:
            return self._window.single(first)
        return self._window.paired(first, self._second[part][rows], self._follows[part][rows])


def _cut(lengths: Integers, limit: int) -> list[int]:
    """Where batches begin and the last one ends: as many sentences as fit, at least one."""
    ends = np.cumsum(lengths)
    cuts = [0]
    while (begin := cuts[-1]) < len(lengths):
        before = ends[begin - 1] if begin else 0
        fitting = int(np.searchsorted(ends, before + limit, side="right"))
        cuts.append(max(fitting, begin + 1))
    return cuts


def _num_words(words: int, sentences: int, *, pairs: bool) -> int:
    """Words and special tokens. A pair has BOS, two EOS and, on the mean, two sentences' words."""
    return 2 * words + 3 * sentences if pairs else words + 2 * sentences


def _next(epoch: int, window: int, num_windows: int) -> dict[str, int]:
    """The beginning of the next window."""
    if window + 1 < num_windows:
        return {"epoch": epoch, "window": window + 1, "batch": 0}
    return {"epoch": epoch + 1, "window": 0, "batch": 0}


def _random(seed: int, epoch: int, stretch: int = 0) -> np.random.Generator:
    """Randomness of its own for each seed, epoch and stretch: 0 the epoch, then its windows.

    The stretch is the highest word of Philox's counter, so that no two ever overlap.
    """
    key = np.array([seed, epoch], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, stretch]))
