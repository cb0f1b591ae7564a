"""The words of a shard once more, as numbers in a mapped file, so that a word is found at once.

    in   for each row group of a shard, the words of its sentences
    out  `words/NAME.bin` and `.places` beside `shards/NAME.parquet`; from these, for each row
         group its distinct words, and the words of its sentences as their numbers

To decode lists of words from Parquet takes some 30 ns a word, to compare a number with another
less than one. Four records stand for each row group: its distinct words, sorted, one after another,
and where each ends; how many words each sentence has; and all words as 16-bit numbers, or 32-bit
where there are too many distinct ones.
"""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from polyseme.storage.records import Records, RecordWriter

Integers = npt.NDArray[np.int64]
LONGEST_RECORD = 128 << 20
"""More than a row group can have of anything (`shards`)."""
_PER_GROUP = 4  # records
_SMALL, _LARGE = np.dtype("<u2"), np.dtype("<u4")


@dataclass(frozen=True)
class GroupWords:
    """The words of a row group. Faults of the file are LimitError (a ValueError) and OSError."""

    _records: Records
    _number: int

    def __len__(self) -> int:
        """How many distinct words there are."""
        return len(self._bounds) - 1

    def spell(self, codes: npt.NDArray[Any] | slice = slice(None)) -> list[str]:
        """The words of these numbers, or of all: distinct words have numbers in their order."""
        bounds, text = self._bounds, self._distinct[0]
        begins, ends = bounds[:-1][codes].tolist(), bounds[1:][codes].tolist()
        return [str(text[begin:end], "utf-8") for begin, end in zip(begins, ends, strict=True)]

    def find(self, words: Collection[str]) -> list[int]:
        """The numbers of these words, of those that are here."""
        if len(words) > 100:
            return [code for code, word in enumerate(self.spell()) if word in words]
        bounds, text = self._bounds, self._distinct[0]

        def spelled(code: int) -> bytes:  # UTF-8 sorts as code points do
            return bytes(text[bounds[code] : bounds[code + 1]])

        wanted = [word.encode() for word in words]
        places = [(bisect_left(range(len(self)), word, key=spelled), word) for word in wanted]
        return sorted(at for at, word in places if at < len(self) and spelled(at) == word)

    @cached_property
    def codes(self) -> npt.NDArray[Any]:
        """All words of all sentences, as numbers of the distinct ones."""
        codes = np.frombuffer(self._sentences[1], _code_type(len(self)))
        if codes.max(initial=0) >= len(self):
            raise ValueError("a word has a number that stands for none")
        return codes

    @cached_property
    def offsets(self) -> Integers:
        """Where each sentence begins in `codes`, and where the last one ends."""
        lengths = np.frombuffer(self._sentences[0], _LARGE)
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if offsets[-1] != len(self.codes):
            raise ValueError("sentences do not have as many words as there are")
        return offsets

    @cached_property
    def _bounds(self) -> Integers:
        """Where each distinct word begins in the text of all, and where the last one ends."""
        return np.concatenate([[0], np.frombuffer(self._distinct[1], _LARGE)]).astype(np.int64)

    @cached_property
    def _distinct(self) -> list[memoryview]:
        return self._records.views(self._number * _PER_GROUP + np.arange(2))

    @cached_property
    def _sentences(self) -> list[memoryview]:
        return self._records.views(self._number * _PER_GROUP + np.arange(2, 4))


class ShardWords:
    """The words of a shard, mapped: a row group costs nothing until it is asked for."""

    def __init__(self, path: Path) -> None:
        self._records = Records(path, LONGEST_RECORD)
        if len(self._records) % _PER_GROUP:
            raise ValueError(f"{path.name} ends within a row group")

    def __len__(self) -> int:
        return len(self._records) // _PER_GROUP

    def __getitem__(self, group: int) -> GroupWords:
        return GroupWords(self._records, group)


class ShardWordsWriter(RecordWriter):
    """Writes the words of a shard, a row group at a time."""

    def add(self, lists: Any) -> None:
        """The words of the next row group, as Arrow's list of dictionary-encoded text."""
        words = lists.values
        order = pc.sort_indices(words.dictionary)
        distinct = words.dictionary.take(order)
        ends = np.cumsum(pc.binary_length(distinct).to_numpy())
        ranks = np.empty(len(order), _code_type(len(order)))
        ranks[order.to_numpy()] = np.arange(len(order))
        lengths = np.diff(lists.offsets.to_numpy())
        self.extend(
            [
                "".join(distinct.to_pylist()).encode(),
                ends.astype(_LARGE).tobytes(),
                lengths.astype(_LARGE).tobytes(),
                ranks[words.indices.to_numpy()].tobytes(),
            ]
        )


def _code_type(num_distinct: int) -> np.dtype[Any]:
    return _SMALL if num_distinct <= np.iinfo(_SMALL).max + 1 else _LARGE
