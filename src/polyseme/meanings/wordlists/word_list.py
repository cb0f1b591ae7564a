"""Counts of words in; those that a reader looks at, ranked, with every figure, out.

The figures of documents (how evenly, and how far a ratio can be trusted) are computed for words
that are listed, not for all that were counted: that takes a second reading of the corpus.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from polyseme.display import counted, html_table, summary
from polyseme.errors import ConfigError
from polyseme.meanings.concordance.export import Cell, Tabular, objects
from polyseme.meanings.settings import Measure, WordListConfig
from polyseme.meanings.wordlists.counting import (
    Selection,
    WordCounts,
    count_documents,
)
from polyseme.meanings.wordlists.measures import Floats, log_dice, log_ratio_interval
from polyseme.progress import SILENT, Progress

_SHOWN = 20  # in a notebook


@dataclass(frozen=True)
class ListedWord:
    """A word of a list with its figures."""

    word: str
    count: int
    """How often it is in the target: around the word, or in the part of the corpus asked about."""
    reference: int
    """How often it is in the reference."""
    expected: float
    """How often it would be in the target if it were as frequent in both."""
    log_ratio: float
    log_ratio_low: float
    """Where the 95 % interval of the log ratio begins."""
    log_ratio_high: float
    g2: float
    log_dice: float | None
    """Of collocates: how strongly the two words go together."""
    mi3: float | None
    """Of collocates."""
    documents: int
    """In how many documents it is where it is more frequent: in the target or the reference."""
    dp: float
    """How evenly it is spread over documents there: Gries's DP, 0 to 1."""


@dataclass(frozen=True)
class WordList(Tabular, Sequence[ListedWord]):
    """Words, the strongest first."""

    title: str
    words: tuple[ListedWord, ...]
    num_found: int
    """How many words met the conditions, of which these are the first."""
    uses: int
    """Of collocates: how many uses of the word there are."""
    target_size: int
    """How many words the target has, punctuation included."""
    reference_size: int
    names: tuple[str, str]
    """What the target and the reference are called in tables."""

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, index: int) -> ListedWord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ListedWord, ...]: ...
    def __getitem__(self, index: int | slice) -> ListedWord | tuple[ListedWord, ...]:
        return self.words[index]

    def table(self) -> "WordListTable":
        """A row for each word."""
        return WordListTable(self)

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each word."""
        return objects(self.table())

    def __repr__(self) -> str:
        first = ", ".join(each.word for each in self.words[:5])
        return summary(self.title, counted(self.num_found, "word"), f"first: {first}")

    def _repr_html_(self) -> str:
        table = self.table()
        rows = [[*row] for row in table.rows()][:_SHOWN]
        shown = f"the first {_SHOWN} of " if len(self) > _SHOWN else ""
        return html_table(f"{self.title}: {shown}{self.num_found:,}", rows, table.columns)


@dataclass(frozen=True)
class WordListTable:
    """A list as rows of cells."""

    words: WordList

    @property
    def columns(self) -> list[str]:
        """The word, its counts in total and per million, then what is computed of them."""
        target, reference = self.words.names
        strength = ["log_dice", "mi3"] if self.words.uses else []
        return [
            *("word", target, reference, f"{target}_per_million", f"{reference}_per_million"),
            *("expected", *strength, "log_ratio", "log_ratio_low", "log_ratio_high"),
            *("g2", "documents", "dp"),
        ]

    def rows(self) -> Iterator[list[Cell]]:
        """In the order of the list."""
        sizes = self.words.target_size, self.words.reference_size
        for each in self.words:
            shares = (1e6 * n / max(1, size) for n, size in zip(
                (each.count, each.reference), sizes, strict=True))  # fmt: skip
            strength = [each.log_dice, each.mi3] if self.words.uses else []
            yield [
                *(each.word, each.count, each.reference, *shares, each.expected, *strength),
                *(each.log_ratio, each.log_ratio_low, each.log_ratio_high),
                *(each.g2, each.documents, each.dp),
            ]

    def __len__(self) -> int:
        return len(self.words)


def _ranks(counts: WordCounts, measure: Measure) -> Floats:
    """(W,) what words are ranked by."""
    table = counts.table()
    match measure:
        case "frequency":
            return table.target
        case "g2":
            return table.g2
        case "log-ratio":
            return table.log_ratio
        case "log-dice" | "mi3" if not counts.uses:
            raise ConfigError(
                f"{measure} measures how strongly two words are associated: it is for collocates. "
                "Rank keywords by g2, log-ratio or frequency."
            )
        case "log-dice":
            return _log_dice(counts)
        case "mi3":
            return table.mi3


def _log_dice(counts: WordCounts) -> Floats:
    table = counts.table()
    return log_dice(table.target, counts.uses, table.target + table.reference)


def list_words(
    counts: WordCounts,
    selection: Selection,
    config: WordListConfig,
    *,
    title: str,
    names: tuple[str, str],
    with_fewer: bool = False,
    progress: Progress = SILENT,
) -> WordList:
    """The words that are more frequent in the target; `with_fewer`, as many that are less, too."""
    table = counts.table()
    g2, values = table.g2, _ranks(counts, config.sort)
    is_more = table.target > table.expected
    more = is_more & (g2 >= config.min_g2) & (table.target >= config.min_frequency)
    order = _ranked(counts, values, more)
    chosen, found = order[: config.top], len(order)
    if with_fewer:
        fewer = ~is_more & (g2 >= config.min_g2) & (table.reference >= config.min_frequency)
        # The same the other way round: the strongest of them have the lowest log ratio.
        values = {"log-ratio": -table.log_ratio, "frequency": table.reference}.get(config.sort, g2)
        order = _ranked(counts, values, fewer)
        chosen = np.concatenate([chosen, order[: config.top][::-1]])
        found += len(order)
    listed = counts.select(chosen)
    spread = count_documents(selection, listed.words, progress).spread(is_more[chosen])
    own = listed.table()
    # The larger of two errors: words are not drawn one by one, but by documents; where there are
    # few of these, how much they differ cannot be told from them.
    variance = np.maximum(own.binomial_variance, spread.variance)
    low, high = log_ratio_interval(own.log_ratio, variance)
    figures = [listed.target, listed.reference, own.expected, own.log_ratio, low, high, own.g2]
    nothing = [None] * len(chosen)
    words = tuple(
        ListedWord(*each)
        for each in zip(
            listed.words.to_pylist(),
            *(each.tolist() for each in figures),
            _log_dice(listed).tolist() if counts.uses else nothing,
            own.mi3.tolist() if counts.uses else nothing,
            spread.num_documents.tolist(),
            spread.dp.tolist(),
            strict=True,
        )
    )
    sizes = counts.target_size, counts.reference_size
    return WordList(title, words, found, counts.uses, *sizes, names)


def _ranked(
    counts: WordCounts, values: Floats, chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The numbers of the chosen words, the highest value first, equal ones by their spelling."""
    numbers = np.flatnonzero(chosen)
    by_word = np.argsort(counts.words.take(numbers).to_numpy(zero_copy_only=False), kind="stable")
    numbers = numbers[by_word]
    return numbers[np.argsort(-values[numbers], kind="stable")]
