"""The function the executors run on each row group of a corpus, to make an index.

    in   a row group, and the words whose uses are wanted
    out  parts/NAME.uses       a row for each use, sorted by word (`index_folder.row_type`)
         parts/NAME.counts     for each word that has any: its number, and how many (int32)
         parts/NAME.sentences  records of int32: row, codes of document and metadata, words
         parts/NAME.values     records of text: what those codes stand for

Sentences, codes and values are counted from 0 in each part; `build.py` makes one of them all.
What is written depends on the part, the model and the settings alone, last bits aside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.embedding.corpus_parts import CorpusPart
from polyseme.embedding.model_work import ModelWork
from polyseme.embedding.word_embedder import is_finite
from polyseme.errors import CorpusError, ModelError
from polyseme.executors import Report
from polyseme.meanings.concordance.search import read_columns
from polyseme.meanings.concordance.sentence_table import DOCUMENT, SPLITMIX, Integers, mixed
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Floats
from polyseme.meanings.index.folder import COUNTS, PARTS, RowShape, row_type
from polyseme.meanings.settings import UseIndexConfig
from polyseme.storage.files import sha256_of
from polyseme.storage.parquet import ParquetReader, read_table
from polyseme.storage.records import RecordWriter
from polyseme.storage.remote_folders import SharedFile
from polyseme.text.corpus import Corpus, damage_explained, words_of
from polyseme.text.shards import ShardWords

FORMAT = 1
"""Raise it when the same uses give other files."""
_TOGETHER = 512  # uses whose substitutes are found at once
_ROWS = 8_192  # rows that are copied at once while they are written
COUNT = np.dtype([("word", "<i4"), ("uses", "<i4")])


def index_part(work: ModelWork, config: UseIndexConfig, words: Path, corpus: Corpus) -> "IndexPart":
    """The work on one part; `words` is the table of `chosen_words`."""
    chosen = SharedFile.of(words, words.parent, sha256_of(words))
    vocabulary = SharedFile.of(corpus.vocabulary, corpus.folder, sha256_of(corpus.vocabulary))
    made_from = [config.model_dump(mode="json"), chosen.sha256, vocabulary.sha256]
    columns = (DOCUMENT, *corpus.config.meta)
    return IndexPart(config, chosen, vocabulary, columns, work.key(FORMAT, *made_from))


@dataclass(frozen=True)
class IndexPart:
    """A function with its settings, so that it can travel to a worker."""

    config: UseIndexConfig
    words: SharedFile
    vocabulary: SharedFile
    columns: tuple[str, ...]
    key: str
    """Hash of all that decides the files: of another one, they are computed again."""

    def __call__(
        self, work: ModelWork, part: CorpusPart, folder: Path, report: Report
    ) -> dict[str, int]:
        """Write the files of a part; `report` is called with sentences that are done."""
        found = _find(self, part)
        out = folder / PARTS / part.name
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = _described(held_encoder(work), found, report)
        report(part.size - len(found.kept))
        _write_uses(rows, out)
        _write_sentences(found, out)
        counts = part.size, len(found.kept), found.num_words, len(rows)
        return dict(zip(COUNTS, counts, strict=True))


@dataclass(frozen=True)
class _PartUses:
    """The uses in a row group, by sentence."""

    kept: Integers  # (S,): rows of the sentences that have uses
    sentences: list[list[str]]
    word_ids: list[npt.NDArray[np.int32]]
    """Of each sentence, the numbers of its words in the corpus's vocabulary."""
    codes: npt.NDArray[np.int32]  # (S, M): numbers of the values of each column, -1 for none
    values: list[str]
    owners: Integers  # (N,): of each use the number of its sentence among these, rising
    begins: Integers  # (N,): which word of it
    words: npt.NDArray[np.int32]  # (N,): numbers in the table of words

    @property
    def num_words(self) -> int:
        """Of all its sentences."""
        return sum(map(len, self.sentences))


def _find(work: IndexPart, part: CorpusPart) -> _PartUses:
    with damage_explained(part.shard):
        words = ShardWords(words_of(part.shard))[part.group]
        texts, codes, offsets = words.spell(), words.codes, words.offsets
        with ParquetReader(part.shard, list(work.columns)) as reader:
            columns = read_columns(reader, part.group, work.columns)
    chosen, totals = _held_words(work.words, work.key)
    ranks = np.array([chosen.get(text.casefold(), -1) for text in texts], np.int32)
    at = np.flatnonzero(ranks[codes] >= 0)
    rows = np.searchsorted(offsets, at, side="right") - 1
    begins, found = at - offsets[rows], ranks[codes[at]]
    is_drawn = drawn(work.config, part.first + rows, begins, totals[found])
    rows, begins, found = rows[is_drawn], begins[is_drawn], found[is_drawn]
    kept, owners = np.unique(rows, return_inverse=True)
    ids = _word_ids(texts, work, part)
    spans = [slice(offsets[row], offsets[row + 1]) for row in kept.tolist()]
    bases = np.cumsum([0, *(len(column.values) for column in columns.values())])
    values = [value for column in columns.values() for value in column.values]
    numbered = [
        np.where(column.codes[kept] < 0, -1, column.codes[kept] + base)
        for column, base in zip(columns.values(), bases.tolist(), strict=False)
    ]
    return _PartUses(
        kept=kept,
        sentences=[[texts[code] for code in codes[span].tolist()] for span in spans],
        word_ids=[ids[codes[span]] for span in spans],
        codes=np.stack(numbered, axis=1).astype(np.int32),
        values=values,
        owners=owners.ravel(),
        begins=begins,
        words=found,
    )


def _word_ids(texts: list[str], work: IndexPart, part: CorpusPart) -> npt.NDArray[np.int32]:
    """The numbers of words in the corpus's vocabulary."""
    known = _held_vocabulary(work.vocabulary, work.key)
    ids = pc.index_in(pa.array(texts, pa.string()), value_set=known)
    if ids.null_count:
        raise CorpusError(
            f"{part.shard} has words that the vocabulary of its corpus lacks. Run the same prepare "
            "command again: it repairs the corpus."
        )
    found: npt.NDArray[np.int32] = ids.to_numpy().astype(np.int32)
    return found


def drawn(
    config: UseIndexConfig, sentences: Integers, begins: Integers, totals: Integers
) -> npt.NDArray[np.bool_]:
    """Which uses are kept of words with more than `max_uses`, whichever worker asks.

    Each use has a number of its own between 0 and 1, by the seed and its place in the corpus.
    """
    numbers = (sentences.astype(np.uint64) << np.uint64(20)) + begins.astype(np.uint64)
    by_chance = mixed(numbers + np.uint64((config.seed - 1) * SPLITMIX % 2**64))
    return (by_chance >> np.uint64(11)) * 2.0**-53 * totals < config.max_uses


def _described(encoder: ModelUseEncoder, found: _PartUses, report: Report) -> npt.NDArray[Any]:
    """A row for each use, in the order of the corpus."""
    rows = np.zeros(len(found.owners), row_type(shape_of(encoder)))
    rows["word"], rows["begin"], rows["sentence"] = found.words, found.begins, found.owners
    done = 0
    waiting: list[tuple[Floats, Floats]] = []
    last = -1
    for context, bag, sentence in _stream(encoder, found):
        waiting.append((context, bag))
        if sentence > last:
            report(1)
            last = sentence
        if sum(len(each) for each, _ in waiting) >= _TOGETHER:
            done += _fill(rows[done:], encoder, waiting)
            waiting = []
    _fill(rows[done:], encoder, waiting)
    return rows


def _stream(encoder: ModelUseEncoder, found: _PartUses) -> Iterator[tuple[Floats, Floats, int]]:
    """Context and bag of all uses in their order, some at a time, and of which sentence."""
    owners, begins = found.owners.tolist(), found.begins.tolist()
    if len(owners) < 2 * len(found.sentences):  # half a sentence each, twice, is the whole
        sentences = [found.sentences[owner] for owner in owners]
        pairs = encoder.stream_single(sentences, [(begin, begin + 1) for begin in begins])
        for (context, bag), owner in zip(pairs, owners, strict=True):
            yield context, bag, owner
        return
    spans: list[list[tuple[int, int]]] = [[] for _ in found.sentences]
    for owner, begin in zip(owners, begins, strict=True):
        spans[owner].append((begin, begin + 1))
    for number, (context, bag) in enumerate(encoder.stream(found.sentences, spans)):
        yield context, bag, number


def _fill(
    rows: npt.NDArray[Any], encoder: ModelUseEncoder, pairs: Sequence[tuple[Floats, Floats]]
) -> int:
    """Put features into rows; how many."""
    if not pairs:
        return 0
    contexts, bags = (np.concatenate(each) for each in zip(*pairs, strict=True))
    features = encoder.features(contexts, bags)
    into = rows[: len(features)]
    with np.errstate(over="ignore", invalid="ignore"):
        into["context"], into["bag"] = features.context, features.bag
    if not (is_finite(into["context"]) and is_finite(into["bag"])):
        raise ModelError(
            f"A vector of this model has a number as large as {np.abs(contexts).max():.3g}; an "
            f"index keeps float16, which ends at {np.finfo(np.float16).max:,.0f}."
        )
    if features.substitutes is not None:
        into["substitutes"] = features.substitutes
    return len(features)


def shape_of(encoder: ModelUseEncoder) -> RowShape:
    """How long the arrays of a row are with this model."""
    return {
        "context": encoder.embedder.dim,
        "bag": encoder.bag_dim,
        "substitutes": encoder.num_substitutes,
    }


def _write_uses(rows: npt.NDArray[Any], out: Path) -> None:
    order = np.argsort(rows["word"], kind="stable")
    with out.with_name(f"{out.name}.uses").open("wb") as stream:
        for begin in range(0, len(order), _ROWS):
            stream.write(rows[order[begin : begin + _ROWS]].tobytes())
    words, uses = np.unique(rows["word"], return_counts=True)
    counts = np.empty(len(words), COUNT)
    counts["word"], counts["uses"] = words, uses
    with out.with_name(f"{out.name}.counts").open("wb") as stream:
        stream.write(counts.tobytes())


def _write_sentences(found: _PartUses, out: Path) -> None:
    with RecordWriter(out.with_name(f"{out.name}.sentences")) as writer:
        heads = np.column_stack([found.kept.astype(np.int32), found.codes]).astype("<i4")
        pairs = zip(heads, found.word_ids, strict=True)
        writer.extend(np.concatenate([head, ids]).astype("<i4").tobytes() for head, ids in pairs)
    with RecordWriter(out.with_name(f"{out.name}.values")) as writer:
        writer.extend(value.encode("utf-8", "surrogatepass") for value in found.values)


def held_encoder(work: ModelWork) -> ModelUseEncoder:
    """The model, held by a worker from part to part."""
    embedder: Any = work.embedder()  # one of ours, known by its identity
    return _encoder_of(embedder)


@lru_cache(maxsize=1)
def _encoder_of(embedder: Any) -> ModelUseEncoder:
    return ModelUseEncoder(embedder)


@lru_cache(maxsize=1)
def _held_words(file: SharedFile, key: str) -> tuple[dict[str, int], Integers]:
    """The number of each chosen word, and how often each occurs in the corpus."""
    del key
    table = read_table(file.local(), ["word", "count"])
    words = table["word"].to_pylist()
    return {word: number for number, word in enumerate(words)}, table["count"].to_numpy()


@lru_cache(maxsize=1)
def _held_vocabulary(file: SharedFile, key: str) -> Any:
    """All words of the corpus, as Arrow has them."""
    del key
    return read_table(file.local(), ["word"])["word"].combine_chunks().cast(pa.string())
