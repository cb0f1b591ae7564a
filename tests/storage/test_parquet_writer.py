from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from required import needs

from polyseme.storage.parquet import ParquetOutput

FULL = Path("/dev/full")
SCHEMA = pa.schema([pa.field("word", pa.string()), pa.field("count", pa.int64())])


def test_each_write_is_a_row_group(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.parquet"
    with ParquetOutput(path, SCHEMA, compression="zstd") as output:
        output.write([pa.array(["one", "two"]), pa.array([1, 2])])
        output.write([pa.array(["three"]), pa.array([3])])
    found = pq.ParquetFile(path)
    assert found.metadata.num_row_groups == 2
    assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    assert found.read().to_pylist() == [
        {"word": "one", "count": 1},
        {"word": "two", "count": 2},
        {"word": "three", "count": 3},
    ]


def test_an_error_comes_through_and_the_file_is_closed(tmp_path: Path) -> None:
    output = ParquetOutput(tmp_path / "a.parquet", SCHEMA)
    with pytest.raises(ZeroDivisionError), output:
        raise ZeroDivisionError
    assert output._file.closed
    assert not output._writer.is_open


@needs(FULL.exists(), "a device that is full", only_on="linux")
def test_a_full_disk_comes_with_its_number() -> None:
    with pytest.raises(OSError, match="No space left") as told:  # noqa: SIM117
        with ParquetOutput(FULL, SCHEMA) as output:
            output.write([pa.array(["one"]), pa.array([1])])
    assert told.value.errno == 28
