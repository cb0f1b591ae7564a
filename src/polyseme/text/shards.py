"""Sentences in, one Parquet shard out with its words to be searched, a row group at a time.

Words are dictionary-encoded within each row group: a reader gets every distinct word once,
and the rest as numbers. Shards know no vocabulary, so it can change without touching them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from polyseme.storage.parquet import FREE_VALUES, ParquetOutput
from polyseme.text.annotation import Annotate
from polyseme.text.shard_words import ShardWordsWriter

# Sentences in a row group: some 250,000 words, 15 MB while being written. Less of long ones.
_ROW_GROUP = 10_000
# An attribute that no word has takes no room, and of such a column a reader takes only so many
# values on trust. Nor does a record of `shard_words` grow without end.
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
            pa.field("sentence_id", pa.string(), nullable=False),
            pa.field("document", _DICTIONARY, nullable=False),
            pa.field("position", pa.int32(), nullable=False),
            pa.field("held_out", pa.bool_(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            pa.field("words", _WORDS, nullable=False),
            pa.field("starts", pa.list_(pa.field("element", pa.int32())), nullable=False),
            *(pa.field(name, _DICTIONARY) for name in meta),
            *(pa.field(name, _WORDS, nullable=False) for name in attributes),
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
