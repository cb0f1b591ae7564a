"""Uses and their features out of an index, where `find_uses` and a model would work them out.

    in   an index, its corpus, a query for single words, conditions on metadata
    out  `IndexedUses`: the same uses in the same order, and their features, from float16

Nothing of a model is needed, and of the corpus only its vocabulary, the values of the columns that
a condition asks about, and the lines that are read.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.display import counted, html_table, summary
from polyseme.errors import ConfigError, InputError
from polyseme.meanings.concordance.conditions import Condition, rows_meeting
from polyseme.meanings.concordance.search import Query, in_longer_words
from polyseme.meanings.concordance.sentence_table import Integers, SentenceTable, TextColumn
from polyseme.meanings.concordance.uses import Uses, find_terms, find_uses
from polyseme.meanings.features.use_features import Syntax, UseEncoder, UseFeatures
from polyseme.meanings.index.folder import IndexFolder, row_type
from polyseme.storage.installed import default_model
from polyseme.storage.parquet import read_table
from polyseme.storage.records import Records, map_array
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.meanings.features.use_encoder import ModelUseEncoder


_TRIES = 5  # to open an index that is being replaced


@dataclass(frozen=True)
class _Rows:
    """All rows, as many mapped files as there are ranges of words."""

    files: list[npt.NDArray[Any]]
    firsts: Integers
    """The number of the first row of each file."""

    @classmethod
    def open(cls, folder: IndexFolder, ends: Integers, ranges: Integers) -> "_Rows":
        """Given of each word where its rows end, and in which range it is."""
        paths = [folder.folder / name for name in folder.uses_files]
        last_words = np.searchsorted(ranges, np.arange(len(paths)), side="right")
        bounds = np.concatenate([[0], ends])[np.concatenate([[0], last_words])]
        kind, sizes = row_type(folder.manifest["shape"]), np.diff(bounds).tolist()
        mapped = [map_array(path, kind, size) for path, size in zip(paths, sizes, strict=True)]
        return cls(mapped, bounds[:-1])

    def __len__(self) -> int:
        return sum(map(len, self.files))

    def between(self, begin: int, end: int) -> npt.NDArray[Any]:
        """The rows of a word, which are all in one file."""
        number = int(np.searchsorted(self.firsts, begin, side="right")) - 1
        first = int(self.firsts[number])
        return self.files[number][begin - first : end - first]

    def take(self, rows: Integers) -> npt.NDArray[Any]:
        """Rows by their numbers."""
        numbers = np.searchsorted(self.firsts, rows, side="right") - 1
        found = np.empty(len(rows), self.files[0].dtype)
        for number in np.unique(numbers).tolist():
            of_file = numbers == number
            found[of_file] = self.files[number][rows[of_file] - self.firsts[number]]
        return found


class UseIndex:
    """An open index. It stays what it was when it was opened, whoever makes it again meanwhile."""

    def __init__(self, files: IndexFolder) -> None:
        self.files = files
        manifest = files.manifest
        columns = ["word", "count", "uses", "sha256"]
        columns += [] if manifest["format"] == 3 else ["range"]
        words = read_table(files.check_table("words"), columns)
        self._words = words["word"].combine_chunks()
        self._counts, self._uses = (words[name].to_numpy() for name in ("count", "uses"))
        self._hashes: list[str] = words["sha256"].to_pylist()
        if len(self._uses) and int(self._uses.min()) < 0:
            raise ValueError("a word has fewer than no uses")
        self._ends = np.cumsum(self._uses)
        ranges = words["range"].to_numpy() if "range" in columns else np.zeros(len(words), np.int64)
        self._rows = _Rows.open(files, self._ends, ranges)
        self._sentences, self._vocabulary, self._values = (
            Records(files.path(name)) for name in ("sentences", "vocabulary", "values")
        )
        names = ["shard", "row_group", "first_sentence", "first_value"]
        table = read_table(files.check_table("parts"), names)
        self._parts = np.stack([table[name].to_numpy() for name in names], axis=1)
        found = read_table(files.check_table("substitutes"), ["word"])
        self.words: list[str] = found["word"].to_pylist()
        """What the numbers of substitutes stand for."""
        self.syntax = Syntax.of_table(
            read_table(files.check_table("syntax"), ["side", "direction"])
        )
        """What may be taken out of contexts; None without a head."""

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> "UseIndex":
        """The index in a folder; one that is replaced just now is the old or the new one."""
        for _ in range(_TRIES):
            files = IndexFolder.open(Path(folder))
            with files_explained(files):
                try:
                    return cls(files)
                except FileNotFoundError as error:
                    # Replaced meanwhile, perhaps twice and by the same again; or they are missing.
                    missing = error
        name = Path(missing.filename).name if missing.filename else missing  # Arrow has no name
        raise files.damaged(f"{name} is missing")

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return summary(
            f"UseIndex {self.files.folder}",
            f"{counted(len(self), 'use')} of {counted(len(self._words), 'word')}",
            f"{self.files.num_bytes / max(1, len(self)):,.0f} bytes per use",
        )

    def _repr_html_(self) -> str:
        order = np.argsort(-self._counts, kind="stable")[:20]
        rows = [
            (self._words[int(number)].as_py(), int(self._counts[number]), int(self._uses[number]))
            for number in order
        ]
        return html_table(repr(self), rows, ("word", "uses in the corpus", "uses here"))

    def word_counts(self) -> tuple[list[str], Integers]:
        """All words of the index, and how many uses of each it has."""
        return self._words.to_pylist(), self._uses

    def find(
        self, corpus: Corpus, query: str | Query, *, where: str | Condition | Sequence[str] = ()
    ) -> "IndexedUses":
        """The uses of a word, as `find_uses` would find them; InputError if it is not here."""
        self.files.check_corpus(corpus)
        query = query if isinstance(query, Query) else Query.of(query)
        condition = query.condition(where, corpus)
        terms = find_terms(query, corpus)
        single = [term[0] for term in terms if isinstance(term, tuple) and len(term) == 1]
        if len(single) < len(terms):
            raise InputError(
                f"An index has single words, and {query} may be several. Leave out the index."
            )
        numbers = self._numbers(single[0])
        with files_explained(self.files):
            return self._find(numbers, single[0], condition, corpus, query)

    def _numbers(self, spellings: frozenset[str]) -> list[int]:
        """Which words of the index these are."""
        wanted = sorted({word.casefold() for word in spellings})
        found = pc.index_in(pa.array(wanted, pa.string()), value_set=self._words).to_pylist()
        missing = [word for word, number in zip(wanted, found, strict=True) if number is None]
        if missing:
            more = f" and {len(missing) - 3:,} others" if len(missing) > 3 else ""
            raise InputError(
                f"{self.files.folder} has no {', '.join(map(repr, missing[:3]))}{more}: it was "
                "made for other words. Leave out the index, or make one with --words."
            )
        return [number for number in found if number is not None]

    def _find(
        self,
        numbers: Sequence[int],
        spellings: frozenset[str],
        where: Condition,
        corpus: Corpus,
        query: Query,
    ) -> "IndexedUses":
        spans = [self._span(number) for number in numbers]
        rows = np.concatenate([np.arange(begin, end) for begin, end in spans])
        sentences, begins = (
            np.concatenate([self._rows.between(begin, end)[name] for begin, end in spans])
            for name in ("sentence", "begin")
        )
        order = np.lexsort((begins, sentences))
        rows, sentences, begins = rows[order], sentences[order], begins[order].astype(np.int64)
        kept, owners = np.unique(sentences, return_inverse=True)
        table = self._table(kept, corpus)
        if len(rows) and not (begins < np.diff(table.offsets)[owners]).all():
            raise ValueError("a use lies outside of its sentence")
        is_one = np.array([text in spellings for text in table.words.values], np.bool_)
        fits = is_one[table.words.codes[table.offsets[owners] + begins]]
        fits &= rows_meeting(where, table.columns)[owners]
        rows, owners, begins = rows[fits], owners[fits], begins[fits]
        uses = Uses(table, owners, np.stack([begins, begins + 1], axis=1), query, corpus)
        found, here = (int(values[list(numbers)].sum()) for values in (self._counts, self._uses))
        return IndexedUses(self, uses, rows, found, here)

    def _span(self, number: int) -> tuple[int, int]:
        """Where the rows of a word lie, which are held against their hash."""
        end = int(self._ends[number])
        begin = end - int(self._uses[number])
        rows = self._rows.between(begin, end)
        if hashlib.sha256(rows.data).hexdigest() != self._hashes[number]:
            raise ValueError(f"the uses of {self._words[number].as_py()!r} are not as written")
        return begin, end

    def _table(self, sentences: Integers, corpus: Corpus) -> SentenceTable:
        """Sentences with their words and metadata."""
        names = self.files.manifest["columns"]
        records = [np.frombuffer(each, "<i4") for each in self._sentences.read(sentences)]
        heads = 1 + len(names)
        if any(len(record) <= heads for record in records):
            raise ValueError("a sentence has no words")
        top = np.array([record[:heads] for record in records], np.int64).reshape(-1, heads)
        parts = self._parts[np.searchsorted(self._parts[:, 2], sentences, side="right") - 1]
        words = [record[heads:] for record in records]
        ids = np.concatenate([np.empty(0, np.int32), *words])
        used, codes = np.unique(ids, return_inverse=True)
        values = {
            name: self._column(top[:, 1 + column], parts[:, 3]) for column, name in enumerate(names)
        }
        return SentenceTable(
            words=TextColumn(self._texts(self._vocabulary, used), codes.astype(np.int32)),
            offsets=np.cumsum([0, *map(len, words)]),
            columns=values,
            shards=corpus.shards,
            places=np.column_stack([parts[:, :2], top[:, 0]]),
        )

    def _column(self, codes: Integers, firsts: Integers) -> TextColumn:
        """Codes of each part from 0, made those of all parts."""
        numbers = np.where(codes < 0, -1, codes + firsts)
        used, inverse = np.unique(numbers, return_inverse=True)
        texts: list[str | None] = [*self._texts(self._values, used[used >= 0])]
        each = [None] * int((used < 0).sum()) + texts
        return TextColumn.of([each[index] for index in inverse.tolist()])

    @staticmethod
    def _texts(records: Records, numbers: npt.NDArray[Any]) -> list[str]:
        return [record.decode("utf-8", "surrogatepass") for record in records.read(numbers)]

    def read(self, rows: Integers) -> UseFeatures:
        """The features of uses by their rows."""
        found = self._rows.take(rows)
        context, bag = (found[name].astype(np.float32) for name in ("context", "bag"))
        substitutes = found["substitutes"].astype(np.int32)
        if substitutes.size and int(substitutes.max()) >= len(self.words):
            raise self.files.damaged("a substitute is not a word of it")
        return UseFeatures(context, bag, substitutes if substitutes.shape[1] else None)


@contextlib.contextmanager
def files_explained(files: IndexFolder) -> Iterator[None]:
    """Turn what is wrong with a file of an index into an error that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError) as error:
        raise files.damaged(error) from error


@dataclass(frozen=True, eq=False)
class IndexedUses:
    """Uses that an index has, and what it knows of them: in the place of a `ModelUseEncoder`."""

    index: UseIndex
    uses: Uses
    rows: Integers  # (N,): where each lies in the index
    num_found: int  # uses of these words that the corpus has
    num_kept: int  # those of them that the index has
    layer: None = None

    @property
    def words(self) -> list[str]:
        """What the numbers of substitutes stand for; empty without a head."""
        return self.index.words

    @property
    def fingerprint(self) -> str:
        """That of the model."""
        found: str = self.index.files.manifest["model"]
        return found

    def gains(self, _: Sequence[Sequence[str]], __: Corpus) -> None:
        """An index predicts nothing."""

    def without_syntax(self, features: UseFeatures) -> UseFeatures:
        """As the model that the index was made with would take it out of the contexts."""
        if self.index.syntax is None:
            return features
        return replace(features, context=self.index.syntax.removed(features.context))

    def encode(self, uses: Uses, on_use: Callable[[int], None] = lambda _: None) -> UseFeatures:
        """Features of some of these uses."""
        wanted = _keys(uses)
        at = np.searchsorted(self._known, wanted)
        assert (self._known[np.minimum(at, len(self._known) - 1)] == wanted).all(), "others' uses"
        found = self.index.read(self.rows[at])
        on_use(len(found))
        return found

    @cached_property
    def _known(self) -> Integers:
        return _keys(self.uses)

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        if self.num_kept >= self.num_found:
            return []
        kept, found = self.num_kept, self.num_found
        return [f"The index has {kept:,} of the {found:,} uses in the corpus, a random sample."]


def _keys(uses: Uses) -> Integers:
    """A number for each use, rising in the order of the corpus."""
    return (uses.sentence_rows.astype(np.int64) << 32) + uses.spans[:, 0]


def open_for(folder: Path, corpus: Corpus, model: str | None = None) -> UseIndex:
    """The index of a corpus, by this model if one is named; refused if it is of another one."""
    index = UseIndex.open(folder)
    index.files.check_corpus(corpus)
    if model is not None:
        from polyseme.embedding.loading import fingerprint_of

        pooling = index.files.manifest["settings"].get("pooling", "mean")
        index.files.check_model(fingerprint_of(model, pooling), model)
    return index


@dataclass(frozen=True)
class UseSource:
    """Uses that were found, and what describes them."""

    uses: Uses
    encoder: UseEncoder
    notes: tuple[str, ...] = ()  # what a reader should know of where they come from


def find_source(
    corpus: Corpus,
    query: Query,
    *,
    where: str | Condition | Sequence[str] = (),
    model: str | None = None,
    layer: int | None = None,
    index: Path | None = None,
) -> UseSource:
    """The uses of a word: by an index, if one is named, or by a model.

    Without either, by the default model for the corpus's language. A model that is named besides
    an index must be the one that the index was made with.
    """
    if index is not None:
        if layer is not None:
            raise ConfigError("An index has no single layers. Leave out --layer, or --index.")
        return find_in_index(index, corpus, query, where=where, model=model)
    name = model or default_model(corpus.config.language)
    terms = find_terms(query, corpus)  # before a model is loaded for a word that is not there
    with ThreadPoolExecutor(1) as pool:  # a model loads while Arrow reads the corpus
        encoder = pool.submit(load_encoder, name, corpus, layer)
        uses = find_uses(corpus, query, where=where, terms=terms)
    chosen = () if model else (f"Model: {name}, the default for {corpus.config.language!r}.",)
    return UseSource(uses, encoder.result(), (*chosen, *_notes(corpus, query)))


def find_in_index(
    index: Path,
    corpus: Corpus,
    query: Query,
    *,
    where: str | Condition | Sequence[str] = (),
    model: str | None = None,
) -> UseSource:
    """The uses of a word that an index has."""

    found = open_for(index, corpus, model).find(corpus, query, where=where)
    return UseSource(found.uses, found, (*found.notes, *_notes(corpus, query)))


def _notes(corpus: Corpus, query: Query) -> tuple[str, ...]:
    mostly = in_longer_words(query, corpus)
    return (mostly.note,) if mostly else ()


def load_encoder(model: str, corpus: Corpus, layer: int | None = None) -> "ModelUseEncoder":
    """What describes the uses of a corpus: by all that a model tells, or by one of its layers."""
    from polyseme.embedding.loading import load_for_corpus
    from polyseme.meanings.features.use_encoder import LayerUseEncoder, ModelUseEncoder

    embedder = load_for_corpus(model, corpus)
    return ModelUseEncoder(embedder, corpus) if layer is None else LayerUseEncoder(embedder, layer)
