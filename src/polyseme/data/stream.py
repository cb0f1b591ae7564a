"""An endless, shuffled, resumable stream of batches out of a corpus.

    in   a corpus, a vocabulary, a seed, a position
    out  batches, each with the position after it

Row groups are shuffled over the corpus, sentences within a window of some row groups, so memory
is bounded by the window. Sentences of like length come together, which leaves little padding.
Everything random is keyed by seed, epoch and window: a run that is resumed reads one window
again and sees the identical rest.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
from pydantic import Field

from polyseme.config import Settings
from polyseme.data.batch import Batch
from polyseme.data.char_vocabulary import Integers
from polyseme.data.pairs import choose_partners
from polyseme.data.vocabulary import Vocabulary
from polyseme.data.window import CorpusWindow, RowGroup, read_window, row_groups
from polyseme.errors import CorpusError
from polyseme.text.corpus import Corpus

__all__ = ["BatchConfig", "SentenceStream", "held_out"]


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

    def _window(self, epoch: int, number: int, skip: int) -> Iterator[tuple[Batch, int, bool]]:
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
            yield makers[index], done, done == len(order)


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
        yield from (makers[index] for index in range(len(makers)))


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
        self._cuts = _cut(lengths[order], limit)

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def __getitem__(self, index: int) -> Batch:
        part = slice(self._cuts[index], self._cuts[index + 1])
        if self._second is None:
            return self._window.single(self._first[part])
        return self._window.paired(self._first[part], self._second[part], self._follows[part])


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
