"""The sentences in which uses were found: words and metadata in memory, texts when they are read.

    in   what `search` found in each row group, or plain lists of words
    out  the words of a sentence, its metadata; its text, offsets and id, which lie in the corpus

Text columns are kept as each distinct value once and a number for each row. Words are all that a
model needs, so texts and offsets are read only for sentences that are looked at: those of one row
group together, and once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.storage.parquet import ParquetReader
from polyseme.text.corpus import damage_explained, words_of
from polyseme.text.shards import ShardWords

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
DOCUMENT = "document"
_DETAILS = ["sentence_id", "text", "starts"]
_REMEMBERED = 20_000  # sentences whose texts are kept; then they are read again
SPLITMIX = 0x9E3779B97F4A7C15
_HASHED = 1 << 16  # sentences at once
_TEXT_BYTES = 1_000  # that one of them takes, about, with its words' offsets


@dataclass(frozen=True)
class TextColumn:
    """A column of text: each distinct value once, and a number for each row; -1 for no value."""

    values: list[str]
    codes: Codes

    @classmethod
    def of(cls, values: Sequence[object]) -> "TextColumn":
        """From plain values; None stays None."""
        texts = [None if value is None else str(value) for value in values]
        return cls.from_arrow([pa.array(texts, pa.string()).dictionary_encode()])

    @classmethod
    def from_arrow(cls, chunks: Sequence[Any]) -> "TextColumn":
        """From dictionary arrays, one after the other."""
        parts = [cls(chunk.dictionary.to_pylist(), _codes_of(chunk.indices)) for chunk in chunks]
        return parts[0] if len(parts) == 1 else cls.joined(parts)

    @classmethod
    def joined(cls, parts: Sequence["TextColumn"]) -> "TextColumn":
        """Columns, one after the other, each distinct value once."""
        numbers: dict[str, int] = {}
        codes = [np.empty(0, np.int32)]
        for part in parts:
            new = [numbers.setdefault(value, len(numbers)) for value in part.values]
            codes.append(np.array([*new, -1], np.int32)[part.codes])  # no value, -1, is the last
        return cls(list(numbers), np.concatenate(codes))

    def select(self, rows: Integers) -> "TextColumn":
        """These rows, and only their values."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        is_value = used >= 0
        numbers = np.cumsum(is_value).astype(np.int32) - 1
        numbers[~is_value] = -1
        return TextColumn([self.values[code] for code in used[is_value]], numbers[codes])

    def take(self, rows: Integers | slice) -> list[str | None]:
        """The values of these rows."""
        values = self.values
        return [values[code] if code >= 0 else None for code in self.codes[rows].tolist()]


def _codes_of(indices: Any) -> Codes:
    codes: Codes = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    return codes


Attribute = tuple[str | None, ...]
"""The values of a word attribute, one for each word of a sentence."""


class Details(NamedTuple):
    """What is read of a sentence only if it is looked at."""

    sentence_id: str
    text: str
    starts: tuple[int, ...]


@dataclass
class SentenceTable:
    """Sentences by number. `places` says where each lies in the corpus: shard, row group, row."""

    words: TextColumn  # all sentences one after another
    offsets: Integers  # where each begins in `words`, and where the last one ends
    columns: Mapping[str, TextColumn]  # `document`, then the user's metadata
    shards: Sequence[Path] = ()
    places: Integers | None = None
    _details: dict[int, Details] = field(default_factory=dict, repr=False)
    _attributes: dict[tuple[str, int], Attribute] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, sentences: Sequence[Sequence[str]], metadata: Mapping[str, Sequence[object]]
    ) -> "SentenceTable":
        """Sentences that are in no corpus, with a value of each column for each."""
        words = TextColumn.of([word for sentence in sentences for word in sentence])
        lengths = [len(sentence) for sentence in sentences]
        columns = {DOCUMENT: [""] * len(sentences), **metadata}
        return cls(
            words,
            np.cumsum([0, *lengths]),
            {name: TextColumn.of(values) for name, values in columns.items()},
        )

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays, and of the texts that were read."""
        columns = (self.words, *self.columns.values())
        places = 0 if self.places is None else self.places.nbytes
        texts = _TEXT_BYTES * (len(self._details) + len(self._attributes))
        return sum(column.codes.nbytes for column in columns) + self.offsets.nbytes + places + texts

    def words_of(self, sentence: int) -> list[str]:
        """The words of a sentence."""
        begin, end = self.offsets[sentence : sentence + 2].tolist()
        return [word or "" for word in self.words.take(slice(begin, end))]

    def hashes(self) -> Hashes:
        """(S,) a number for each sentence by its words: equal ones have the same, in any corpus."""
        digests = [blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                   for word in self.words.values]  # fmt: skip
        of_words = np.frombuffer(b"".join([*digests, bytes(8)]), "<u8").astype(np.uint64)
        found = np.empty(len(self.offsets) - 1, np.uint64)
        for first in range(0, len(found), _HASHED):
            ends = self.offsets[first : first + _HASHED + 1]
            codes = self.words.codes[ends[0] : ends[-1]]
            places = np.arange(len(codes)) - np.repeat(ends[:-1] - ends[0], np.diff(ends))
            each = mixed(of_words[codes] + mixed(places.astype(np.uint64)))
            sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each)])[ends - ends[0]]
            found[first : first + _HASHED] = np.diff(sums)
        return found

    def details_of(self, sentence: int) -> Details:
        """Its text, offsets and id; reads the sentences of its row group that are in this table."""
        if self.places is None:
            words = self.words_of(sentence)
            starts = np.cumsum([0, *(len(word) + 1 for word in words)])[:-1].tolist()
            return Details(str(sentence), " ".join(words), tuple(starts))
        if sentence not in self._details:
            path, group, sentences, rows = self._of_row_group(sentence, self.places)
            found = _read_details(path, group, rows)
            if len(self._details) + len(found) > _REMEMBERED:
                self._details.clear()
            self._details |= zip(sentences.tolist(), found, strict=True)
        return self._details[sentence]

    def attribute_of(self, sentence: int, name: str) -> Attribute:
        """A word attribute of each word of a sentence; read and remembered as its details are."""
        if self.places is None:
            return (None,) * len(self.words_of(sentence))
        if (name, sentence) not in self._attributes:
            path, group, sentences, rows = self._of_row_group(sentence, self.places)
            lengths = np.diff(self.offsets)[sentences]
            found = _read_attribute(path, group, rows, name, lengths)
            if len(self._attributes) + len(found) > _REMEMBERED:
                self._attributes.clear()
            keys = [(name, each) for each in sentences.tolist()]
            self._attributes |= zip(keys, found, strict=True)
        return self._attributes[name, sentence]

    def _of_row_group(
        self, sentence: int, places: Integers
    ) -> tuple[Path, int, Integers, Integers]:
        """Where a sentence lies, all sentences of its row group in this table, and their rows."""
        shard, group, _ = places[sentence].tolist()
        sentences = np.flatnonzero((places[:, 0] == shard) & (places[:, 1] == group))
        return self.shards[shard], group, sentences, places[sentences, 2]

    def around(self, sentence: int, distance: int) -> tuple[list[str], list[str]]:
        """Texts of neighbours in the same document and row group; none outside of a corpus."""
        if self.places is None:
            return [], []
        shard, group, row = self.places[sentence].tolist()
        path = self.shards[shard]
        with damage_explained(path), ParquetReader(path, [DOCUMENT, "text"]) as reader:
            near = reader.read_group(group).slice(max(0, row - distance), 2 * distance + 1)
            documents, texts = near[DOCUMENT].to_pylist(), near["text"].to_pylist()
        middle = min(row, distance)
        same = [document == documents[middle] for document in documents]
        before = [text for text, is_same in zip(texts[:middle], same, strict=False) if is_same]
        after = zip(texts[middle + 1 :], same[middle + 1 :], strict=True)
        return before, [text for text, is_same in after if is_same][:distance]

    def words_around(self, sentences: Integers, distance: int) -> dict[int, Sequence[str]]:
        """The words of the sentences before and after each of these, in one document."""
        if self.places is None:
            return dict.fromkeys(sentences.tolist(), ())
        found: dict[int, Sequence[str]] = {}
        groups, owners = np.unique(self.places[sentences, :2], axis=0, return_inverse=True)
        for number, (shard, group) in enumerate(groups.tolist()):
            here = sentences[owners.ravel() == number]
            rows = self.places[here, 2]
            found |= zip(
                here.tolist(), _words_near(self.shards[shard], group, rows, distance), strict=True
            )
        return found


def mixed(numbers: Hashes) -> Hashes:
    """Each number as one that looks as if drawn by chance (Steele et al., 2014: SplitMix64)."""
    found = numbers + np.uint64(SPLITMIX)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def _words_near(path: Path, group: int, rows: Integers, distance: int) -> Iterator[list[str]]:
    """Of each of these rows of a row group, the words of the rows around it."""
    with damage_explained(path), ParquetReader(path, [DOCUMENT]) as reader:
        chunks = reader.read_group(group)[DOCUMENT].chunks
        documents = TextColumn.from_arrow(chunks).codes
    with damage_explained(words_of(path)):
        words = ShardWords(words_of(path))[group]
        offsets, codes = words.offsets, words.codes
        if len(offsets) != len(documents) + 1:
            raise ValueError("it has other sentences than the words beside it")
        for row in rows.tolist():
            near = range(max(0, row - distance), min(len(documents), row + distance + 1))
            same = [n for n in near if n != row and documents[n] == documents[row]]
            parts = [codes[offsets[n] : offsets[n + 1]] for n in same]
            yield words.spell(np.concatenate(parts)) if parts else []


def _read_details(path: Path, group: int, rows: Integers) -> list[Details]:
    """The details of these rows of a row group."""
    with damage_explained(path):
        with ParquetReader(path, _DETAILS) as reader:
            table = reader.read_group(group).take(rows)
        columns = [table[name].to_pylist() for name in _DETAILS]
        return [
            Details(sentence_id, text, tuple(starts))
            for sentence_id, text, starts in zip(*columns, strict=True)
        ]


def _read_attribute(
    path: Path, group: int, rows: Integers, name: str, lengths: Integers
) -> list[Attribute]:
    """A word attribute of these rows of a row group."""
    with damage_explained(path):
        with ParquetReader(path, [name]) as reader:
            found = reader.read_group(group).take(rows)[name].to_pylist()
        if [len(values) for values in found] != lengths.tolist():
            raise ValueError(f"{name} does not have a value for each word")
        return [tuple(values) for values in found]


def covered(begins: Integers, ends: Integers, size: int) -> npt.NDArray[np.bool_]:
    """(size,) what lies in at least one of these spans."""
    lengths = ends - begins
    # All places of each span, one span after the other.
    places = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
    found = np.zeros(size, np.bool_)
    found[places] = True
    return found
