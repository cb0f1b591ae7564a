"""The n-gram model that a neural one is compared with: a corpus in, held-out perplexity out, or the
probability of each word of sentences from elsewhere.

It predicts what the neural model predicts: each word of a sentence and then its end, n + 1
predictions for n words, from the sentence's own words only. A word outside the vocabulary is
the one unknown word, both as what is predicted and as what is known.

    ids      0 .. V-1 the vocabulary, V the unknown word, V+1 the end, V+2 the start (as context)
    grams    w0 .. w(N-1), number   every distinct n-gram of the training sentences, how often
    held     w0 .. w(N-1), times    every distinct n-gram of the held-out sentences, how often
                                    (of other sentences: every n-gram, `times` being its number)
    scored   times, probability     one row for each row of `held`

DuckDB counts, in a database in the scratch folder: memory stays within its setting however large
the corpus is, and the disk holds each distinct n-gram once. `w0` is the word that is predicted,
`w1` the one before it, and so on. Smoothing is interpolated modified Kneser-Ney (Chen and Goodman,
"An empirical study of smoothing techniques for language modeling", 1998, section 3); at each order

    p(w0 | context) = (c - D(c)) / total + (D1 n1 + D2 n2 + D3 n3) / total * p(w0 | one word less)

with c the number of this n-gram, total that of all with its context, and n1, n2, n3 how many
different words follow the context once, twice, more often. The highest order counts occurrences,
each lower one the different words found to the left. Under the lowest lies a uniform distribution
over all classes, so nothing is impossible. A context never seen leaves everything to the order
below.
"""

import contextlib
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from polyseme.config import Settings
from polyseme.errors import ConfigError, CorpusError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import disk_faults_explained, scratch_folder
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained
from polyseme.text.word_counts import open_duckdb


class Discounts(NamedTuple):
    """What is taken off a count of one, of two, and of three or more."""

    one: float
    two: float
    more: float


FALLBACK = Discounts(0.5, 1.0, 1.5)
"""For an order whose counts give no estimate; the numbers are KenLM's (`--discount_fallback`).

That is usual for single words: a vocabulary cut by frequency has none that was seen just once."""


class NgramConfig(Settings):
    """An interpolated modified Kneser-Ney model."""

    order: int = Field(default=3, ge=1, le=5)
    """Words in an n-gram: the predicted one and those before it."""
    memory: str = Field(default="2GB", pattern=r"^\d+(\.\d+)? ?[MG]i?B$")
    """Memory for counting, such as 2GB; what does not fit goes to the scratch folder."""
    every: int = Field(default=1, ge=1)
    """Predict one held-out sentence in this many, in corpus order, beginning with the first."""


@dataclass(frozen=True)
class NgramResult:
    """How well the held-out sentences were predicted."""

    perplexity: float
    log_probability: float
    """Natural logarithm, of all predictions together."""
    predictions: int
    unigram_perplexity: float
    """Of the same model with order 1: how often a word occurs, nothing of what is before it."""
    discounts: tuple[Discounts, ...]
    """Of each order, the lowest first."""


_GRAMS = "CREATE TABLE grams AS SELECT *, count(*) AS number FROM rows GROUP BY ALL"
_HELD = "CREATE TABLE held AS SELECT *, count(*) AS times FROM rows GROUP BY ALL"
# Tables of the same names in a schema of their own: `smooth` uses up those it works on.
_UNIGRAMS = """
    CREATE SCHEMA unigrams;
    CREATE TABLE unigrams.grams AS
        SELECT w0, sum(number)::BIGINT AS number FROM main.grams GROUP BY w0;
    CREATE TABLE unigrams.held AS
        SELECT w0, sum(times)::BIGINT AS times FROM main.held GROUP BY w0;
"""


def held_out_perplexity(
    corpus: Corpus,
    vocabulary: Sequence[str] | pa.Array,
    config: NgramConfig,
    *,
    scratch: Path,
    threads: int,
    backward: bool = False,
    progress: Progress = SILENT,
) -> NgramResult:
    """Count the training sentences, then predict the held-out ones.

    The vocabulary is words only; the unknown word and the special tokens are added here. `backward`
    predicts each word from those after it. Nothing is left in the scratch folder.
    """
    words = pc.unique(pa.array(vocabulary, pa.string()))
    source = _Source(corpus, words, config, backward, progress)
    num_classes = len(words) + 2
    with (
        disk_faults_explained(scratch),
        _open_database(scratch, config.memory, threads) as connection,
    ):
        predictions = _fill(connection, source)
        unigram, _ = _score(connection, "unigrams", order=1, num_classes=num_classes)
        log_probability, discounts = _score(
            connection, "main", order=config.order, num_classes=num_classes
        )
    return NgramResult(
        perplexity=math.exp(-log_probability / predictions),
        log_probability=log_probability,
        predictions=predictions,
        unigram_perplexity=math.exp(-unigram / predictions),
        discounts=discounts,
    )


def sentence_log_probabilities(
    corpus: Corpus,
    vocabulary: Sequence[str] | pa.Array,
    sentences: Sequence[Sequence[str]],
    config: NgramConfig,
    *,
    scratch: Path,
    threads: int,
    progress: Progress = SILENT,
) -> list[list[float]]:
    """Count the training sentences, then predict each word of these sentences, and its end.

    Natural logarithms: n + 1 for a sentence of n words. Vocabulary and scratch folder as in
    `held_out_perplexity`.
    """
    words = pc.unique(pa.array(vocabulary, pa.string()))
    source = _Source(corpus, words, config, backward=False, progress=progress)
    lengths = np.array([len(sentence) + 1 for sentence in sentences])
    line = pa.array([word for sentence in sentences for word in sentence], pa.string())
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths - 1)]), pa.int32())
    grams = source.to_columns(pa.ListArray.from_arrays(ends, line.dictionary_encode()))
    numbers = np.arange(lengths.sum())
    with (
        disk_faults_explained(scratch),
        _open_database(scratch, config.memory, threads) as connection,
    ):
        _fill_from(connection, source, _GRAMS, held_out=False)
        columns = [f"w{distance}" for distance in range(config.order)]
        connection.register("rows", pa.table([*grams, numbers], names=[*columns, "times"]))
        connection.execute("CREATE TABLE held AS SELECT * FROM rows")
        connection.unregister("rows")
        smooth(connection, order=config.order, num_classes=len(words) + 2)
        scored = connection.execute("SELECT times, probability FROM scored").fetchnumpy()
    found = np.empty(len(numbers))
    found[scored["times"]] = np.log(scored["probability"])
    return [part.tolist() for part in np.split(found, np.cumsum(lengths)[:-1])]


def scratch_for_counting(corpus: Corpus) -> contextlib.AbstractContextManager[Path | str]:
    """In the corpus, whose disk is likely to have room; elsewhere if that is read-only."""
    if os.access(corpus.folder, os.W_OK):
        return scratch_folder(corpus.folder)
    return tempfile.TemporaryDirectory()


@contextlib.contextmanager
def _open_database(scratch: Path, memory: str, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A new database in a folder of its own, both gone afterwards."""
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="ngrams-", dir=scratch) as folder:
            own = Path(folder)
            database = str(own / "grams.duckdb")
            with open_duckdb(database, memory=memory, threads=threads, spilled=own) as connection:
                # An order costs memory, and nothing has one.
                connection.execute("SET preserve_insertion_order = false")
                yield connection
    except duckdb.OutOfMemoryException as error:
        if "max_temp_directory_size" in str(error):
            raise  # it is the disk that is full
        raise ConfigError(
            f"memory = {memory!r} is too little to count n-grams with {threads} threads. Give "
            "more, or use fewer threads."
        ) from error
    finally:
        with contextlib.suppress(OSError):  # not empty: others have work in it
            scratch.rmdir()


def _fill(connection: duckdb.DuckDBPyConnection, source: "_Source") -> int:
    """Make the tables of n-grams and of unigrams; how many predictions there are."""
    _fill_from(connection, source, _GRAMS, held_out=False)
    _fill_from(connection, source, _HELD, held_out=True)
    connection.execute(_UNIGRAMS)
    row = connection.execute("SELECT coalesce(sum(times), 0)::BIGINT FROM held").fetchone()
    if row is None or row[0] == 0:
        raise CorpusError(
            f"{source.corpus.folder} has no held-out sentences, so there is nothing to predict. "
            "Prepare it again with a larger share of them: held_out = 0.02, for example."
        )
    return int(row[0])


def _fill_from(
    connection: duckdb.DuckDBPyConnection, source: "_Source", query: str, *, held_out: bool
) -> None:
    """Make a table of the n-grams of one kind of sentences."""
    folder = source.corpus.folder
    with source.rows(held_out=held_out) as rows:
        connection.register("rows", rows)
        try:
            connection.execute(query)
        except duckdb.InvalidInputException as error:  # what DuckDB makes of a failing stream
            reason = str(error).partition("Detail: Python exception")[0]
            raise CorpusError(
                f"The shards of {folder} cannot be read: {reason.strip()} "
                f"Find out which are damaged with: polyseme inspect {folder} --verify"
            ) from error
        connection.unregister("rows")


def _score(
    connection: duckdb.DuckDBPyConnection, schema: str, *, order: int, num_classes: int
) -> tuple[float, tuple[Discounts, ...]]:
    """The log-probability of all predictions with the tables of one schema, and the discounts."""
    connection.execute(f"USE {schema}")
    discounts = smooth(connection, order=order, num_classes=num_classes)
    columns = connection.execute("SELECT times, probability FROM scored").fetchnumpy()
    # An exact sum, so that it does not depend on the order of the rows, which is any.
    return math.fsum(columns["times"] * np.log(columns["probability"])), discounts


@dataclass(frozen=True)
class _Source:
    """Sentences as rows of ids, one row for each prediction."""

    corpus: Corpus
    vocabulary: Any
    config: NgramConfig
    backward: bool
    progress: Progress

    def rows(self, *, held_out: bool) -> Any:
        """A stream of columns w0, the id that is predicted, w1, the one before it, and so on."""
        schema = pa.schema([(f"w{k}", pa.int32()) for k in range(self.config.order)])
        batches = (
            pa.record_batch(self.to_columns(words), schema=schema)
            for words in self._sentences(held_out=held_out)
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _sentences(self, *, held_out: bool) -> Iterator[Any]:
        """The words of the sentences of one kind, a list array for each row group."""
        every = self.config.every if held_out else 1
        seen = 0
        shards = self.corpus.shards
        self.progress.start(f"n-grams {'held out' if held_out else 'to train on'}", len(shards))
        for done, path in enumerate(shards, start=1):
            with damage_explained(path), ParquetReader(path, ["words", "held_out"]) as file:
                for group in range(file.num_row_groups):
                    table = file.read_group(group)
                    for batch in table.to_batches():
                        (places,) = np.nonzero(batch["held_out"].to_numpy(False) == held_out)
                        wanted = (np.arange(len(places)) + seen) % every == 0
                        seen += len(places)
                        yield batch["words"].take(pa.array(places[wanted]))
            self.progress.update(done)

    def to_columns(self, sentences: Any) -> list[Any]:
        """The words of many sentences as n-grams. Each distinct word is looked up once."""
        order, unknown = self.config.order, len(self.vocabulary)
        words = sentences.flatten()
        id_of = pc.index_in(words.dictionary, value_set=self.vocabulary).fill_null(unknown)
        ids = id_of.take(words.indices).to_numpy(False)
        lengths = pc.list_value_length(sentences).to_numpy(False)
        if self.backward:  # the sentences are then also in reverse, which changes no count
            ids, lengths = ids[::-1], lengths[::-1]
        # All in one line: the starts of a sentence (order - 1), its words, its end, the next one.
        first = np.cumsum(lengths + order) - lengths - 1
        line = np.full(len(ids) + order * len(lengths), unknown + 2, np.int32)
        word_before = np.cumsum(lengths) - lengths
        line[np.arange(len(ids)) + np.repeat(first - word_before, lengths)] = ids
        line[first + lengths] = unknown + 1
        (predicted,) = np.nonzero(line != unknown + 2)
        return [line[predicted - distance] for distance in range(order)]


_BEGIN = "CREATE TABLE state AS SELECT *, 0::DOUBLE AS value, 1::DOUBLE AS weight FROM held"
_COUNTS_OF_COUNTS = """
    SELECT count(*) FILTER (number = 1), count(*) FILTER (number = 2),
           count(*) FILTER (number = 3), count(*) FILTER (number = 4) FROM grams
"""
# Only what some held-out n-gram asks for is fetched, so that the joins in _DESCEND are small.
_FIND = "CREATE TABLE found AS SELECT * FROM grams SEMI JOIN state USING ({words})"
# Whole numbers, discounted later: a sum of fractions would depend on the number of threads.
_SUM_UP = """
    CREATE TABLE contexts AS SELECT {context} sum(number)::DOUBLE AS total,
        count(*) FILTER (number = 1) AS n1, count(*) FILTER (number = 2) AS n2,
        count(*) FILTER (number > 2) AS n3
    FROM grams {needed} GROUP BY ALL
"""
# The recursion unrolled from above: `value` is what the orders so far have given, `weight` the
# share they leave to those below.
_DESCEND = """
    CREATE TABLE below AS SELECT {kept} times,
        value + weight * coalesce((number - CASE number WHEN 1 THEN $one WHEN 2 THEN $two
                                   ELSE $more END) / total, 0) AS value,
        weight * coalesce(($one * n1 + $two * n2 + $more * n3) / total, 1) AS weight
    FROM state LEFT JOIN found USING ({words}) LEFT JOIN contexts {matching}
"""
_SHORTEN = "CREATE TABLE shorter AS SELECT {words}, count(*) AS number FROM grams GROUP BY ALL"
_FINISH = "CREATE TABLE scored AS SELECT times, value + weight / $classes AS probability FROM state"


def smooth(
    connection: duckdb.DuckDBPyConnection, *, order: int, num_classes: int
) -> tuple[Discounts, ...]:
    """Make `scored` of `grams` and `held`, which are used up; the discounts, lowest order first."""
    connection.execute(_BEGIN)
    connection.execute("DROP TABLE held")
    discounts = []
    for size in range(order, 0, -1):
        row = connection.execute(_COUNTS_OF_COUNTS).fetchone()
        assert row is not None  # a count always has one row
        discounts.append(estimate_discounts(row))
        _descend(connection, size, discounts[-1])
        if size > 1:
            connection.execute(_SHORTEN.format(words=", ".join(_words(size - 1))))
            connection.execute("DROP TABLE grams; ALTER TABLE shorter RENAME TO grams")
    connection.execute(_FINISH, {"classes": num_classes})
    connection.execute("DROP TABLE state; DROP TABLE grams")
    return tuple(reversed(discounts))


def estimate_discounts(counts_of_counts: Sequence[int]) -> Discounts:
    """The three discounts, from how many n-grams were counted once, twice, 3 and 4 times.

    An estimate must leave something to the order below and take no more than is there; where it
    does not, or cannot be made, all three are FALLBACK's.
    """
    n1, n2, n3, n4 = counts_of_counts
    if 0 in (n1, n2, n3):
        return FALLBACK
    y = n1 / (n1 + 2 * n2)
    found = Discounts(1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return found if all(amount > 0 for amount in found) else FALLBACK


def _descend(connection: duckdb.DuckDBPyConnection, size: int, discounts: Discounts) -> None:
    """Add to `state` what the n-grams of one size give, and drop the word no smaller one has."""
    words, context = ", ".join(_words(size)), ", ".join(_words(size)[1:])
    connection.execute(_FIND.format(words=words))
    connection.execute(
        _SUM_UP.format(
            context=f"{context}," if context else "",
            needed=f"SEMI JOIN state USING ({context})" if context else "",
        )
    )
    connection.execute(
        _DESCEND.format(
            kept="".join(f"{name}, " for name in _words(size - 1)),
            words=words,
            matching=f"USING ({context})" if context else "ON true",
        ),
        discounts._asdict(),
    )
    connection.execute("DROP TABLE state; DROP TABLE found; DROP TABLE contexts")
    connection.execute("ALTER TABLE below RENAME TO state")


def _words(size: int) -> list[str]:
    """The columns that hold an n-gram of this size."""
    return [f"w{distance}" for distance in range(size)]
