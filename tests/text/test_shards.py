"""Sentences written to Parquet come back as they were."""

import errno
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from polyseme.storage.parquet import ParquetReader
from polyseme.text import shards
from polyseme.text.shards import ShardWriter

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
