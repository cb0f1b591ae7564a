"""Sentences written to Parquet come back as they were.

The words of a shard, mapped: all that was written is found again, and faults are noticed.
"""

import errno
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.storage.parquet import ParquetReader
from polyseme.storage.records import save_array
from polyseme.text import shards
from polyseme.text.shards import GroupWords, ShardWords, ShardWordsWriter, ShardWriter

ROWS: list[tuple[Any, ...]] = [
    ("d1:0:0", "d1", 0, False, "One two", ["One", "two"], [0, 4], "1850", None),
    ("d1:0:1", "d1", 1, False, "中文", ["中", "文"], [0, 1], "1850", "N"),
    ("d2:0:0", "d2", 0, True, "two", ["two"], [0], None, "N"),
]
COLUMNS = (
    "sentence_id",
    "document",
    "position",
    "held_out",
    "text",
    "words",
    "starts",
    "date",
    "author",
)


def write(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with ShardWriter(path, ("date", "author")) as writer:
        for row in rows:
            writer.add(row)


def test_rows_come_back_as_written_in_the_same_bytes(tmp_path: Path) -> None:
    for name, rows in (("a", ROWS), ("b", ROWS), ("c", [])):
        write(tmp_path / f"{name}.parquet", rows)
    expected = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == expected
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    empty = pq.read_table(tmp_path / "c.parquet")
    assert (empty.num_rows, tuple(empty.column_names)) == (0, COLUMNS)


def test_a_full_row_group_is_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "_ROW_GROUP", 2)
    write(tmp_path / "a.parquet", ROWS + ROWS[:2])
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert [metadata.row_group(i).num_rows for i in range(3)] == [2, 2, 1]


def test_words_are_stored_by_number(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ROWS * 100)
    metadata = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    columns = [metadata.column(i) for i in range(metadata.num_columns)]
    (words,) = [column for column in columns if column.path_in_schema == "words.list.element"]
    assert words.has_dictionary_page


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a disk that is always full")
@pytest.mark.parametrize("num_rows", [1, 30_000])
def test_a_full_disk_comes_as_an_error_with_its_number(tmp_path: Path, num_rows: int) -> None:
    (tmp_path / "full.parquet").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        write(tmp_path / "full.parquet", ROWS[:1] * num_rows)
    assert caught.value.errno == errno.ENOSPC


def test_long_sentences_without_attributes_can_be_read_back(tmp_path: Path) -> None:
    """A column of nothing takes no room: its row groups are small, so that it is read even so."""
    words = ["w"] * 250
    for attributes, groups in ((("xpos",), 2), ((), 2)):
        path = tmp_path / f"{len(attributes)}.parquet"
        with ShardWriter(path, (), attributes=attributes) as writer:
            for number in range(2_200):
                row = (f"s{number}", "d", number, False, "w", words, [0] * 250)
                writer.add((*row, *([None] * 250 for _ in attributes)))
        with ParquetReader(path, list(attributes) or ["words"]) as reader:
            assert reader.num_row_groups == groups
            for group in range(groups):
                reader.read_group(group)


Sentences = Sequence[Sequence[str]]
# NUL and the last code point sort first and last; the empty word is no word, but does no harm.
WORDS = st.sampled_from(["", "a", "b", "bank", "Bank", "ß", "中", "中文", "\x00", "\U0010ffff"])
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=5)


def write_of_shard_words(path: Path, groups: Sequence[Sentences]) -> ShardWords:
    with ShardWordsWriter(path) as writer:
        for sentences in groups:
            plain = pa.array(sentences, pa.list_(pa.string()))
            words = plain.values.dictionary_encode()
            writer.add(pa.ListArray.from_arrays(plain.offsets, words))
    return ShardWords(path)


def sentences_of(group: GroupWords) -> list[list[str]]:
    words = group.spell(group.codes)
    begins = group.offsets.tolist()
    return [words[begin:end] for begin, end in pairwise(begins)]


@given(groups=st.lists(SENTENCES, max_size=4), wanted=st.sets(WORDS), small=st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_is_read_and_found_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[Sentences],
    wanted: set[str],
    *,
    small: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not small:  # as if there were too many distinct words for 16 bits
            patch.setattr(shards, "_SMALL", np.dtype("<u4"))
        shard = write_of_shard_words(tmp_path_factory.mktemp("words") / "a.npy", groups)
        assert len(shard) == len(groups)
        for number, sentences in enumerate(groups):
            group = shard[number]
            assert sentences_of(group) == sentences
            there = {word for sentence in sentences for word in sentence}
            assert group.spell() == sorted(there)
            assert group.spell(np.array(group.find(wanted), int)) == sorted(there & wanted)


@pytest.mark.parametrize("count", [65_536, 65_537])
def test_numbers_are_wider_where_there_are_too_many_words(tmp_path: Path, count: int) -> None:
    words = [f"{number:x}" for number in range(count)]
    group = write_of_shard_words(tmp_path / "a.npy", [[words]])[0]
    assert group.codes.dtype == (np.uint16 if count == 65_536 else np.uint32)
    assert sentences_of(group) == [words]
    for some in (words[:200], words[-3:]):
        assert group.spell(np.array(group.find(some))) == sorted(some)


def test_an_error_on_the_way_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(KeyError), ShardWordsWriter(tmp_path / "a.npy"):
        raise KeyError("from the work")


def test_a_changed_byte_is_an_error_or_another_word(tmp_path: Path) -> None:
    write_of_shard_words(tmp_path / "a.npy", [[["river", "bank"], ["bank"]]])
    content = (tmp_path / "a.npy").read_bytes()
    refused = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / "a.npy").write_bytes(changed)
        try:
            assert sum(map(len, sentences_of(ShardWords(tmp_path / "a.npy")[0]))) == 3
        except ValueError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([b"ab", [1, 2], [2], [0, 2]], "stands for none"),
        ([b"ab", [1, 2], [3], [0, 1]], "as many words"),
        ([b"ab", [2, 1], [2], [0, 1]], "one after another"),
        ([b"ab", [1, 9], [2], [0, 1]], "one after another"),
        ([b"\xff", [1], [1], [0]], "can't decode"),
        ([b"ab", [1, 2], [2]], "as many row groups"),
        ([], "as many row groups"),
    ],
)
def test_hostile_arrays_are_refused(tmp_path: Path, arrays: list[Any], message: str) -> None:
    with (tmp_path / "a.npy").open("wb") as stream:
        for values in [*arrays, [1]]:
            save_array(stream, np.array(list(values), "u1" if isinstance(values, bytes) else "<u4"))
    with pytest.raises(ValueError, match=message):
        sentences_of(ShardWords(tmp_path / "a.npy")[0])
