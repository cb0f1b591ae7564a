"""Parquet: a row a document, a damaged part rejected by itself."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyseme.errors import InputError
from polyseme.text.formats import tables
from polyseme.text.formats.tables import plan_row_groups
from polyseme.text.records import ReadItem, Rejected
from polyseme.text.settings import CorpusConfig
from polyseme.text.sources import Source
from text.making import make_config, make_piece, num_blank, read_all, reasons, records, texts


def write(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "input", **options)
    return folder / "input"


def read(path: Path, config: CorpusConfig | None = None) -> list[ReadItem]:
    source = Source(path, "input", "parquet", None, path.stat().st_size)
    return list(tables.read(make_piece(source), config or make_config()))


@pytest.mark.parametrize(
    ("column", "expected", "rejected", "blank"),
    [
        (["one", "two", "three"], ["one", "two", "three"], [], 0),
        (["one", None, " ", ""], ["one"], ["no-text"], 2),
        ([1, 2], [], ["text-not-a-string"] * 2, 0),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"], [], 0),
        (pa.array([], pa.string()), [], [], 0),
    ],
)
def test_each_row_is_a_document_named_by_its_number(
    tmp_path: Path, column: Any, expected: list[str], rejected: list[str], blank: int
) -> None:
    items = read(write(tmp_path, {"text": column}, row_group_size=2))
    assert (texts(items), reasons(items), num_blank(items)) == (expected, rejected, blank)
    assert [r.document for r in records(items)] == [f"input#{n}" for n in range(len(expected))]


def test_ids_and_metadata_come_from_their_columns(tmp_path: Path) -> None:
    when = datetime(1850, 5, 1)  # noqa: DTZ001  # as most tables have it
    path = write(tmp_path, {"body": ["x"], "nr": [7], "date": [when], "other": [1]})
    config = make_config(text_column="body", id_column="nr", meta=("date",))
    (record,) = records(read(path, config))
    assert (record.document, record.meta) == ("7", ("1850-05-01 00:00:00",))


def test_text_that_is_not_utf_8_costs_one_row(tmp_path: Path) -> None:
    raw = [b"good"] * 2000
    raw[1500] = b"bad \xff"
    column = pa.array(raw, pa.binary()).cast(pa.string(), safe=False)
    items = read(write(tmp_path, {"text": column}))
    assert len(texts(items)) == 1999
    assert reasons(items) == ["unreadable-row"]


def test_a_time_python_cannot_hold_costs_one_row(tmp_path: Path) -> None:
    times = pa.array([0, 2**62], pa.timestamp("us"))
    items = read(write(tmp_path, {"text": ["a", "b"], "date": times}), make_config(meta=("date",)))
    assert texts(items) == ["a"]
    assert reasons(items) == ["unreadable-row"]


def test_a_damaged_row_group_is_rejected_by_itself(tmp_path: Path) -> None:
    values = [f"row {i}" for i in range(30)]
    path = write(tmp_path, {"text": values}, row_group_size=10, use_dictionary=False)
    second = pq.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    begin = second.data_page_offset
    data[begin : begin + second.total_compressed_size] = b"\xff" * second.total_compressed_size
    path.write_bytes(data)
    items = read(path)
    assert texts(items) == values[:10] + values[20:]
    (bad,) = [item for item in items if isinstance(item, Rejected)]
    assert (bad.reason, bad.units, bad.place) == ("broken-row-group", 10, 10)


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"no parquet at all", b"PAR1" + bytes(50) + b"PAR1"]
)
def test_what_is_no_parquet_is_rejected_as_one(tmp_path: Path, data: bytes) -> None:
    assert reasons(read_all(tmp_path, data, "parquet")) == ["broken-file"]
    path = write(tmp_path, {"text": ["a"] * 100})
    path.write_bytes(path.read_bytes()[:-20])
    assert reasons(read(path)) == ["broken-file"]


def test_a_row_group_beyond_all_bounds_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LARGEST_ROW_GROUP", 10)
    (item,) = read(write(tmp_path, {"text": ["a long text"] * 5}))
    assert isinstance(item, Rejected)
    assert (item.reason, item.units) == ("row-group-too-large", 5)


def test_a_missing_column_is_an_error_that_names_those_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'text'.*body, nr"):
        read(write(tmp_path, {"body": ["x"], "nr": [1]}))


def test_row_groups_are_gathered_up_to_the_size_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": [str(i) * 50 for i in range(10)]}, row_group_size=1)
    source = Source(path, "input", "parquet", None, path.stat().st_size)
    assert [(a, b) for a, b, _ in plan_row_groups(source, 1)] == [(i, i + 1) for i in range(10)]
    assert [(a, b) for a, b, _ in plan_row_groups(source, 1 << 30)] == [(0, 10)]


def test_many_rows_that_point_at_one_long_text_are_not_unfolded(tmp_path: Path) -> None:
    long = pa.array(["x " * 3_500_000])
    codes = pa.array([0] * 1_024, pa.int32())
    columns = {"text": pa.DictionaryArray.from_arrays(codes, long)}
    path = write(tmp_path, columns, compression="zstd")
    items = read(path)
    assert reasons(items) == ["broken-row-group"]
    rest = items[-1]
    assert isinstance(rest, Rejected)
    assert "250 times" in rest.detail
    assert len(items) - 1 + rest.units == 1_024
    assert len(items) <= 4


def test_a_cell_that_is_too_large_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["first", "x" * (40 << 20), "last"]}, compression="zstd")
    items = read(path)
    assert texts(items) == ["first", "last"]
    assert reasons(items) == ["row-too-large"]


def test_pages_that_lie_are_not_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path, {"text": ["a", "b"]}, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    # The header of the first page: its kind, then its size as a zigzag number.
    assert data[4:6] == b"\x15\x00"
    data[6:8] = b"\x15\xfe"
    path.write_bytes(bytes(data[:8]) + b"\xff\xff\xff\x0f" + bytes(data[12:]))
    assert reasons(read(path)) == ["broken-row-group"]
