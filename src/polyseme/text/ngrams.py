"""The n-gram model that a neural one is compared with: a corpus in, held-out perplexity out.

It predicts what the neural model predicts: each word of a sentence and then its end, n + 1
predictions for n words, from the sentence's own words only. A word outside the vocabulary is
the one unknown word, both as what is predicted and as what is known.

    ids   0 .. V-1 the vocabulary, V the unknown word, V+1 the end, V+2 the start, never predicted

DuckDB counts, in a database in the scratch folder: memory stays within its setting however
large the corpus is, and the disk holds each distinct n-gram once.
"""

import contextlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from polyseme.config import Settings
from polyseme.errors import ConfigError, CorpusError
from polyseme.progress import NullProgress, Progress
from polyseme.storage.files import disk_faults_explained
from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import Corpus, damage_explained
from polyseme.text.kneser_ney import Discounts, smooth
from polyseme.text.word_counts import open_duckdb


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
    progress: Progress | None = None,
) -> NgramResult:
    """Count the training sentences, then predict the held-out ones.

    The vocabulary is words only; the unknown word and the special tokens are added here. `backward`
    predicts each word from those after it. Nothing is left in the scratch folder.
    """
    words = pc.unique(pa.array(vocabulary, pa.string()))
    source = _Source(corpus, words, config, backward, progress or NullProgress())
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
    folder = source.corpus.folder
    for query, held_out in ((_GRAMS, False), (_HELD, True)):
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
    connection.execute(_UNIGRAMS)
    row = connection.execute("SELECT coalesce(sum(times), 0)::BIGINT FROM held").fetchone()
    if row is None or row[0] == 0:
        raise CorpusError(
            f"{folder} has no held-out sentences, so there is nothing to predict. Prepare it "
            "again with a larger share of them: held_out = 0.02, for example."
        )
    return int(row[0])


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
            pa.record_batch(self._to_columns(words), schema=schema)
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

    def _to_columns(self, sentences: Any) -> list[Any]:
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
