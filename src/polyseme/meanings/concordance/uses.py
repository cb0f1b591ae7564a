"""A corpus and what is looked for in, every use of it out.

    in   a corpus and a query: a word, forms, a pattern or a term, and which sentences count
    out  `Uses`: each occurrence with its sentence, its place there, its document and metadata

A use is one occurrence. `Uses` is a sequence of them, kept in columns: tens of thousands take
little memory and go to a model without becoming objects. Memory is bounded by what is found and a
few row groups of the corpus.

`MarkedUse` is a use in a sentence that a person gives: "He sat on the *bank* of the river", or the
sentence and the word.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

import numpy as np

from polyseme.display import counted, html_table, sentence, summary
from polyseme.errors import InputError
from polyseme.meanings.concordance.conditions import (
    EVERYTHING,
    Condition,
    rows_meeting,
)
from polyseme.meanings.concordance.export import Cell, Tabular
from polyseme.meanings.concordance.search import (
    Query,
    Sought,
    every_group,
    near_forms,
    search,
)
from polyseme.meanings.concordance.sentence_table import (
    DOCUMENT,
    Hashes,
    Integers,
    SentenceTable,
    mixed,
)
from polyseme.text.corpus import Corpus

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder


_SHOWN = 20  # uses in a notebook's table
_CONTEXT = 8  # words on either side there


@dataclass(frozen=True)
class Use:
    """One occurrence of a word, or of a term of several words, in its sentence."""

    words: tuple[str, ...]
    """All words of the sentence."""
    begin: int
    end: int
    """It is `words[begin:end]`."""
    sentence_id: str
    document: str
    text: str
    """The sentence as it stands in the corpus."""
    starts: tuple[int, ...]
    """Where each word begins in `text`, in characters."""
    metadata: Mapping[str, str | None]
    """The user's columns."""

    @property
    def form(self) -> str:
        """The word as it is written here."""
        last = self.end - 1
        return self.text[self.starts[self.begin] : self.starts[last] + len(self.words[last])]


_OURS = ("left", "form", "right", "text", "begin", "end", "sentence_id", DOCUMENT)


@dataclass(frozen=True)
class UseTable:
    """Uses as rows: left, form, right, text, its offsets there, its sentence, document, metadata.

    `first` has columns that come before all others, a value for each use.
    """

    uses: "Uses"
    first: Mapping[str, Sequence[Cell]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """These, then ours, then the user's, renamed if they are called like one of the others."""
        ours = [*self.first, *_OURS]
        return [*ours, *(f"{name}_" if name in ours else name for name in self.uses.columns[1:])]

    def select(self, numbers: Integers) -> "UseTable":
        """These rows, in this order."""
        chosen = {name: [values[n] for n in numbers] for name, values in self.first.items()}
        return UseTable(self.uses.select(numbers), chosen)

    def __len__(self) -> int:
        return len(self.uses)

    def rows(self) -> Iterator[list[Cell]]:
        """As they are in the corpus."""
        for index, use in enumerate(self.uses):
            begin = use.starts[use.begin]
            end = use.starts[use.end - 1] + len(use.words[use.end - 1])
            left, right = use.text[:begin].rstrip(), use.text[end:].lstrip()
            yield [
                *(values[index] for values in self.first.values()),
                *(left, use.form, right, use.text, begin, end, use.sentence_id, use.document),
                *use.metadata.values(),
            ]


class Uses(Tabular, Sequence[Use]):
    """Uses in columns. `uses[0]` and a loop give each as a `Use`, which reads its text."""

    def __init__(
        self,
        table: SentenceTable,
        rows: Integers,
        spans: Integers,
        query: Query | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        self._table, self._rows, self.query = table, rows, query
        self.spans = spans
        """(N, 2): each use is the words from `begin` to before `end` of its sentence."""
        self.corpus = corpus
        """Where they were found, if not in sentences given as lists."""

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sequence[str]],
        spans: Sequence[tuple[int, int]] | Integers,
        metadata: Mapping[str, Sequence[object]] | None = None,
    ) -> "Uses":
        """Uses in sentences that are in no corpus: lists of words, one use in each.

        `metadata` has a value for each sentence, by the name of its column.
        """
        metadata = metadata or {}
        checked = np.asarray(spans, np.int64).reshape(-1, 2)
        for name, column in {"spans": checked, **metadata}.items():
            if len(column) != len(sentences):
                raise InputError(
                    f"{len(sentences):,} sentences but {len(column):,} values of {name}: each "
                    "sentence needs one."
                )
        for number, ((begin, end), words) in enumerate(zip(checked, sentences, strict=True)):
            if not 0 <= begin < end <= len(words):
                raise InputError(
                    f"Sentence {number} has {len(words)} words, but its use is from {begin} to "
                    f"{end}. Expected: 0 <= begin < end <= {len(words)}."
                )
        return cls(SentenceTable.of(sentences, metadata), np.arange(len(sentences)), checked)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Use: ...
    @overload
    def __getitem__(self, index: slice) -> "Uses": ...
    def __getitem__(self, index: int | slice) -> "Use | Uses":
        if isinstance(index, slice):
            return self.select(np.arange(len(self))[index])
        row, (begin, end) = int(self._rows[index]), self.spans[index].tolist()
        columns = self._table.columns.items()
        values = {name: column.take(slice(row, row + 1))[0] for name, column in columns}
        document = values.pop(DOCUMENT) or ""
        words, details = tuple(self._table.words_of(row)), self._table.details_of(row)
        return Use(words, begin, end, details.sentence_id, document, details.text,
                   details.starts, values)  # fmt: skip

    def __iter__(self) -> Iterator[Use]:
        return (self[index] for index in range(len(self)))

    def select(self, indices: Sequence[int] | Integers) -> "Uses":
        """These uses, in this order."""
        chosen = np.asarray(indices, np.int64)
        return Uses(self._table, self._rows[chosen], self.spans[chosen], self.query, self.corpus)

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays, the sentences that it shares with others included."""
        return self._table.num_bytes + self._rows.nbytes + self.spans.nbytes

    @property
    def places(self) -> Integers:
        """(N, 5): shard, row group, row, first word and the one after the last, in the corpus."""
        if self._table.places is None:
            raise InputError("These uses are in no corpus.")
        return np.concatenate([self._table.places[self._rows], self.spans], axis=1)

    @property
    def sentence_rows(self) -> Integers:
        """(N,): of each use, the number of its sentence in the table they share."""
        return self._rows

    def matching(self, condition: Condition) -> Integers:
        """The numbers of the uses whose metadata meet a condition."""
        accepted = rows_meeting(condition, self._table.columns)
        return np.flatnonzero(accepted[self._rows])

    def around(self, index: int, distance: int = 3) -> tuple[list[str], list[str]]:
        """The texts of the sentences just before and just after a use's, of the same document."""
        return self._table.around(int(self._rows[index]), distance)

    def words_around(self, distance: int = 2) -> list[Sequence[str]]:
        """For each use the words of the sentences just before and after its own."""
        found = self._table.words_around(np.unique(self._rows), distance)
        return [found[row] for row in self._rows.tolist()]

    def attribute(self, index: int, name: str) -> tuple[str | None, ...]:
        """A word attribute of each word of a use's sentence, one that the corpus has."""
        return self._table.attribute_of(int(self._rows[index]), name)

    def sentences(self) -> list[list[str]]:
        """The words of each use's sentence; two uses in one sentence share one list."""
        made = {row: self._table.words_of(row) for row in np.unique(self._rows).tolist()}
        return [made[row] for row in self._rows.tolist()]

    def forms(self) -> set[str]:
        """The forms that they have, each once; a term's words with spaces between."""
        spans = self.spans.tolist()
        pairs = zip(self.sentences(), spans, strict=True)
        return {" ".join(words[begin:end]) for words, (begin, end) in pairs}

    def sentence_ids(self) -> list[str]:
        """The id of each use's sentence; reads them from the corpus."""
        return [self._table.details_of(row).sentence_id for row in self._rows.tolist()]

    def hashes(self, seed: int) -> Hashes:
        """(N,) a number by chance for each use: by the words of its sentence and its place there,
        wherever it stands in the corpus and whatever else is there.

        Uses that are alike in that are told apart by their order.
        """
        alike = self._table.hashes()[self._rows] + mixed(self.spans[:, 0].astype(np.uint64))
        order = np.argsort(alike, kind="stable")
        _, begins, sizes = np.unique(alike[order], return_index=True, return_counts=True)
        copies = np.empty(len(self), np.uint64)
        copies[order] = np.arange(len(self)) - np.repeat(begins, sizes)
        return mixed(alike + mixed(copies + np.uint64(seed << 32)))

    @property
    def columns(self) -> list[str]:
        """Names of the columns that `metadata` knows: `document`, then the user's."""
        return list(self._table.columns)

    def metadata(self, name: str) -> list[str | None]:
        """The values of a column, one for each use; None where there is none."""
        if name not in self._table.columns:
            raise InputError(
                f"There is no column {name!r}. Columns of these uses: {', '.join(self.columns)}."
            )
        return self._table.columns[name].take(self._rows)

    def table(self) -> UseTable:
        """All uses with all metadata, one per row."""
        return UseTable(self)

    def __repr__(self) -> str:
        documents = len(np.unique(self._table.columns[DOCUMENT].codes[self._rows]))
        found = f"{counted(len(self), 'use')} in {counted(documents, 'document')}"
        first = sentence(self._table.words_of(int(self._rows[0]))) if len(self) else ""
        return summary(self._name, found, f"first: {first!r}" if first else "")

    def _repr_html_(self) -> str:
        shown = f"the first {_SHOWN} of " if len(self) > _SHOWN else ""
        rows = [(*_in_context(use), use.document) for use in self[:_SHOWN]]
        header = ("left", "use", "right", DOCUMENT)
        return html_table(f"{self._name}: {shown}{len(self):,}", rows, header)

    @property
    def _name(self) -> str:
        return f"Uses of {self.query}" if self.query else "Uses"


def _in_context(use: Use) -> tuple[str, str, str]:
    left, right = use.words[: use.begin][-_CONTEXT:], use.words[use.end :][:_CONTEXT]
    return " ".join(left), use.form, " ".join(right)


def numbers_by_word(uses: Uses) -> dict[str, Integers]:
    """The numbers of the uses of each single word, which is case folded, in the given order."""
    found: dict[str, list[int]] = defaultdict(list)
    begins = uses.spans[:, 0].tolist()
    for number, (words, begin) in enumerate(zip(uses.sentences(), begins, strict=True)):
        found[words[begin].casefold()].append(number)
    return {word: np.array(numbers, np.int64) for word, numbers in found.items()}


def find_uses(
    corpus: Corpus,
    query: str | Query,
    *,
    where: str | Condition | Sequence[str] = (),
    terms: Sequence[Sought] | None = None,
) -> Uses:
    """Every use in the corpus, in its order, of a word or what else a `Query` says.

    `where`: a condition that a sentence's metadata must meet, such as `year<1860 and
    author~Dickens`; or several, of which all must be met. A word that is not in the corpus is an
    error that names near forms; one that is, but not with this metadata, has no uses. `terms`: what
    `find_terms` found for the query, if that was asked before.
    """
    query = query if isinstance(query, Query) else Query.of(query)
    condition = query.condition(where, corpus)
    terms = find_terms(query, corpus) if terms is None else terms
    table, rows, spans = search(corpus, terms, condition)
    if not len(rows) and condition == EVERYTHING:
        raise _no_use_of(query, corpus)
    return Uses(table, rows, spans, query, corpus)


def find_words(
    corpus: Corpus, words: Sequence[str], where: Condition = EVERYTHING, *, step: int = 1
) -> Uses:
    """Uses of any of these words, in every n-th row group of the corpus."""
    query = Query(tuple(words))
    parts = every_group(corpus, step)
    table, rows, spans = search(corpus, query.resolve(corpus), where, parts=parts)
    return Uses(table, rows, spans, query, corpus)


def find_terms(query: Query, corpus: Corpus) -> list[Sought]:
    """What to look for; an error at once if the corpus has none of its words."""
    if not (terms := query.resolve(corpus)):
        raise _no_use_of(query, corpus)
    return terms


class NoUseError(InputError):
    """A word that is not in a corpus."""

    near: Sequence[str] = ()  # words that are, and are spelt alike


def _no_use_of(query: Query, corpus: Corpus) -> NoUseError:
    near = near_forms(query, corpus)
    if query.is_cql:
        told = "Leave out parts of the query to see which of them it is."
    elif query.is_regex:
        told = "No word of its vocabulary matches the pattern as a whole."
    elif near:
        told = f"Near forms in its vocabulary: {', '.join(near)}."
    else:
        told = "Its vocabulary has no similar spelling. `polyseme inspect` shows frequent ones."
    error = NoUseError(f"{corpus.folder} has no use of {query}. {told}")
    error.near = near
    return error


_MARKED = re.compile(r"\*(\S(?:[^*]*\S)?)\*")


@dataclass(frozen=True)
class MarkedUse:
    """A sentence and the use in it: `words[begin:end]`."""

    words: tuple[str, ...]
    begin: int
    end: int

    @property
    def form(self) -> str:
        """The use as it is written."""
        return " ".join(self.words[self.begin : self.end])


def read_marked(embedder: "WordEmbedder", text: str, word: str = "") -> MarkedUse:
    """The use that is meant in a text: between asterisks, or the only occurrence of `word`."""
    text, first, last = _place(text, word)
    before, marked = embedder.normalize(text[:first]), embedder.normalize(text[first:last])
    found = embedder.preprocessor(text)
    begin = found.text.find(marked, max(0, len(before) - 1))
    end = begin + len(marked)
    for spans in found.stored():
        at = [
            number
            for number, (start, each) in enumerate(zip(spans.starts, spans.words, strict=True))
            if start < end and start + len(each) > begin
        ]
        if at and begin >= 0:
            return MarkedUse(tuple(spans.words), at[0], at[-1] + 1)
    raise InputError(f"There is no word in what is marked: {text[first:last]!r}.")


def _place(text: str, word: str) -> tuple[str, int, int]:
    """The text without marks, and where the use begins and ends in it."""
    marks = list(_MARKED.finditer(text))
    if len(marks) == 1:
        mark = marks[0]
        plain = text[: mark.start()] + mark[1] + text[mark.end() :]
        return plain, mark.start(), mark.start() + len(mark[1])
    if not word:
        found = "none is" if not marks else f"{len(marks)} are"
        raise InputError(
            f"Mark the word that is meant with asterisks: 'He sat on the *bank*'; {found} marked "
            f"in {text!r:.80}."
        )
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    # Without spaces between words, a word's neighbours are letters, too.
    places = list(pattern.finditer(text)) or list(re.finditer(re.escape(word), text))
    if len(places) != 1:
        raise InputError(
            f"{word!r} occurs {len(places)} times in {text!r:.80}. Mark the one that is meant with "
            "asterisks: 'He sat on the *bank*'."
        )
    return text, places[0].start(), places[0].end()
