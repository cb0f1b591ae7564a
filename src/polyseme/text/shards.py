"""Sentences in, one Parquet shard out with its words to be searched, a row group at a time.

Words are dictionary-encoded within each row group: a reader gets every distinct word once,
and the rest as numbers. Shards know no vocabulary, so it can change without touching them.

The words of a shard stand once more as numbers in a mapped file, so that a word is found at once:
to decode lists of words from Parquet takes some 30 ns a word, to compare a number with another less
than one. Four arrays stand in `words/NAME.npy` for each row group of `shards/NAME.parquet`: its
distinct words, sorted, one after another as UTF-8; where each of them ends; how many words each
sentence has; and all words as 16-bit numbers, or 32-bit where there are too many distinct ones. The
last array has the number of row groups. Attributes of words, such as lemmas, stand in
`words/NAME.ATTRIBUTE.npy` in the same way; a word without a value has the empty one.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from polyseme.storage.parquet import FREE_VALUES, ParquetOutput, required
from polyseme.storage.records import map_arrays, save_array
from polyseme.text.annotation import Annotate

Integers = npt.NDArray[np.int64]
_PER_GROUP = 4  # arrays
_SMALL, _LARGE = np.dtype("<u2"), np.dtype("<u4")


class GroupWords:
    """The words of a row group. Faults of the file are LimitError (a ValueError) and OSError."""

    def __init__(
        self,
        arrays: list[npt.NDArray[Any]],
        attribute: Callable[[str], "GroupWords"] | None = None,
    ) -> None:
        self._text, self._ends, self._lengths, self._codes = arrays
        self._attribute = attribute
        if self._text.itemsize != 1:
            raise ValueError("the text of words is not bytes")

    def __len__(self) -> int:
        """How many distinct words there are."""
        return len(self._ends)

    def attribute(self, name: str) -> "GroupWords":
        """An attribute of the same words: its values are the words there, in the same order."""
        assert self._attribute is not None, "an attribute has none"
        found = self._attribute(name)
        if not np.array_equal(found.offsets, self.offsets):
            raise ValueError(f"{name} does not have a value for each word")
        return found

    def spell(self, codes: npt.NDArray[Any] | slice = slice(None)) -> list[str]:
        """The words of these numbers, or of all: distinct words have numbers in their order."""
        bounds, text = self._bounds, self._text.data
        begins, ends = bounds[:-1][codes].tolist(), bounds[1:][codes].tolist()
        return [str(text[begin:end], "utf-8") for begin, end in zip(begins, ends, strict=True)]

    def to_arrow(self) -> Any:
        """All distinct words as an array of Arrow, over the same memory."""
        ends = pa.py_buffer(np.ascontiguousarray(self._bounds, np.int32))
        text = pa.py_buffer(np.ascontiguousarray(self._text))
        words = pa.StringArray.from_buffers(len(self), ends, text)
        words.validate(full=True)
        return words

    def find(self, words: Collection[str]) -> list[int]:
        """The numbers of these words, of those that are here."""
        if len(words) > 100:
            return [code for code, word in enumerate(self.spell()) if word in words]
        bounds, text = self._bounds, self._text.data

        def spelled(code: int) -> bytes:  # UTF-8 sorts as code points do
            return bytes(text[bounds[code] : bounds[code + 1]])

        wanted = [word.encode() for word in words]
        places = [(bisect_left(range(len(self)), word, key=spelled), word) for word in wanted]
        return sorted(at for at, word in places if at < len(self) and spelled(at) == word)

    @cached_property
    def codes(self) -> npt.NDArray[Any]:
        """All words of all sentences, as numbers of the distinct ones."""
        if self._codes.max(initial=0) >= len(self):
            raise ValueError("a word has a number that stands for none")
        return self._codes

    @cached_property
    def offsets(self) -> Integers:
        """Where each sentence begins in `codes`, and where the last one ends."""
        offsets = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.int64)])
        if offsets[-1] != len(self.codes):
            raise ValueError("sentences do not have as many words as there are")
        return offsets

    @cached_property
    def _bounds(self) -> Integers:
        """Where each distinct word begins in the text of all, and where the last one ends."""
        bounds = np.concatenate([[0], self._ends]).astype(np.int64)
        if (np.diff(bounds) < 0).any() or bounds[-1] != len(self._text):
            raise ValueError("its words do not lie one after another")
        return bounds


class ShardWords:
    """The words of a shard, mapped: a row group costs nothing until it is asked for."""

    def __init__(self, path: Path) -> None:
        *self._arrays, count = map_arrays(path) or [np.empty(0)]
        if count.tolist() != [len(self._arrays) / _PER_GROUP]:
            raise ValueError(f"{path.name} does not have as many row groups as were written")
        self._path = path
        self._attributes: dict[str, ShardWords] = {}

    def __len__(self) -> int:
        return len(self._arrays) // _PER_GROUP

    def __getitem__(self, group: int) -> GroupWords:
        begin = group * _PER_GROUP
        arrays = self._arrays[begin : begin + _PER_GROUP]
        return GroupWords(arrays, cache(lambda name: self._attribute(name)[group]))

    def _attribute(self, name: str) -> "ShardWords":
        if name not in self._attributes:
            self._attributes[name] = ShardWords(attribute_path(self._path, name))
        return self._attributes[name]


def attribute_path(words: Path, name: str) -> Path:
    """Where an attribute of the words of this file is."""
    return words.with_name(f"{words.stem}.{name}.npy")


class ShardWordsWriter:
    """Writes the words of a shard, a row group at a time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("wb")
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._stream:
            if kind is None:
                save_array(self._stream, np.array([self._count], _LARGE))

    def add(self, lists: Any) -> None:
        """The words of the next row group, as Arrow's list of dictionary-encoded text."""
        words = lists.values
        if words.null_count:
            words = pc.fill_null(words.cast(pa.string()), "").dictionary_encode()
        order = pc.sort_indices(words.dictionary)
        distinct = words.dictionary.take(order)
        ends = np.cumsum(pc.binary_length(distinct).to_numpy())
        is_small = len(order) <= np.iinfo(_SMALL).max + 1
        ranks = np.empty(len(order), _SMALL if is_small else _LARGE)
        ranks[order.to_numpy()] = np.arange(len(order))
        for values in (
            np.frombuffer("".join(distinct.to_pylist()).encode(), np.uint8),
            ends.astype(_LARGE),
            np.diff(lists.offsets.to_numpy()).astype(_LARGE),
            ranks[words.indices.to_numpy()],
        ):
            save_array(self._stream, values)
        self._count += 1


# Sentences in a row group: some 250,000 words, 15 MB while being written. Less of long ones.
_ROW_GROUP = 10_000
# An attribute that no word has takes no room, and of such a column a reader takes only so many
# values on trust. Nor does an array of `ShardWords` grow without end.
_MOST_WORDS = FREE_VALUES // 2
_MOST_CHARACTERS = 16 << 20
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


_AT_DOCUMENT, _AT_TEXT, _AT_WORDS, _AT_META = 1, 4, 5, 7  # among the columns
_WORDS = pa.list_(pa.field("element", _DICTIONARY))


def shard_schema(meta: tuple[str, ...], attributes: tuple[str, ...] = ()) -> Any:
    """Columns of a shard: ours, then the user's metadata, then attributes of words.

    An attribute has a value for each of `words`, which may be null.
    """
    return pa.schema(
        [
            *required(
                sentence_id=pa.string(),
                document=_DICTIONARY,
                position=pa.int32(),
                held_out=pa.bool_(),
                text=pa.string(),
                words=_WORDS,
                starts=pa.list_(pa.field("element", pa.int32())),
            ),
            *(pa.field(name, _DICTIONARY) for name in meta),
            *required(**dict.fromkeys(attributes, _WORDS)),
        ]
    )


class ShardWriter(ParquetOutput):
    """Collects sentences and writes them out whenever a row group is full.

    `searched`, if there are any, take the words of each row group, then each attribute. The last of
    the attributes may be such as the words are annotated with here: a row has no values of them.
    """

    def __init__(
        self,
        path: Path,
        meta: tuple[str, ...],
        searched: Sequence[ShardWordsWriter] = (),
        attributes: tuple[str, ...] = (),
        annotate: Sequence[Annotate] = (),
    ) -> None:
        self._searched, self._annotate = searched, annotate
        lists = [f"{name}.list.element" for name in ("words", *attributes)]
        super().__init__(
            path,
            shard_schema(meta, attributes),
            compression="zstd",
            use_dictionary=["document", *lists, *meta],
            # Far above what a row group holds, so that words never fall back to plain strings.
            dictionary_pagesize_limit=64 << 20,
        )
        self._num_given = len(self.schema) - len(annotate)
        self._columns: list[list[Any]] = [[] for _ in range(self._num_given)]
        self._at_attributes = _AT_META + len(meta)
        self._num_words = self._num_characters = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """One sentence: its values in the order of the schema, those that are given."""
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._num_words += len(row[_AT_WORDS])
        values = (row[_AT_DOCUMENT], row[_AT_TEXT], *row[_AT_META : self._at_attributes])
        self._num_characters += sum(len(value) for value in values if value)
        for attribute in row[self._at_attributes :]:
            self._num_characters += sum(len(value) for value in attribute if value)
        is_long = self._num_words >= _MOST_WORDS or self._num_characters >= _MOST_CHARACTERS
        if is_long or len(self._columns[0]) >= _ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as row groups."""
        if not self._columns[0]:
            return
        words = self._columns[_AT_WORDS]
        columns = [*self._columns, *(list(annotate(words)) for annotate in self._annotate)]
        arrays = [
            _encode(values, kind) for values, kind in zip(columns, self.schema.types, strict=True)
        ]
        self.write(arrays)
        lists = [arrays[_AT_WORDS], *arrays[self._at_attributes :]]
        for writer, values in zip(self._searched, lists, strict=False):
            writer.add(values)
        self._columns = [[] for _ in range(self._num_given)]
        self._num_words = self._num_characters = 0


def _encode(values: list[Any], kind: Any) -> Any:
    """A column as Arrow. Each dictionary holds just the words of this row group."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    if pa.types.is_list(kind) and pa.types.is_dictionary(kind.value_type):
        plain = pa.array(values, pa.list_(pa.string()))
        encoded = plain.values.dictionary_encode()
        return pa.ListArray.from_arrays(plain.offsets, encoded, type=kind)
    return pa.array(values, kind)
