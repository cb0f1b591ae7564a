"""Reading Parquet: text as dictionaries, and as it is where nothing can be hidden in it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from required import needs

from polyseme.limits import LimitError
from polyseme.storage import parquet
from polyseme.storage.parquet import ParquetOutput, ParquetReader, read_batches

WORDS = ["bank", "river", "bank", "中文", "", "bank"]


def write(path: Path, *, use_dictionary: bool) -> Path:
    table = pa.table({"word": pa.array(WORDS, pa.string()), "count": range(6)})
    pq.write_table(table, path, use_dictionary=use_dictionary, row_group_size=4)
    return path


@pytest.mark.parametrize("use_dictionary", [False, True])
def test_text_is_the_same_however_it_was_written(tmp_path: Path, *, use_dictionary: bool) -> None:
    path = write(tmp_path / "a.parquet", use_dictionary=use_dictionary)
    batches = list(read_batches(path, ["word"], rows=3))
    assert [word for batch in batches for word in batch["word"].to_pylist()] == WORDS
    assert all(batch["word"].type == pa.string() for batch in batches)


@pytest.mark.parametrize(
    ("use_dictionary", "will_expand", "comes_plain"),
    [(False, True, True), (False, False, False), (True, True, False), (True, False, False)],
)
def test_text_comes_plain_only_if_no_page_points_elsewhere(
    tmp_path: Path, *, use_dictionary: bool, will_expand: bool, comes_plain: bool
) -> None:
    path = write(tmp_path / "a.parquet", use_dictionary=use_dictionary)
    with ParquetReader(path, ["word"], will_expand=will_expand) as reader:
        kind = reader.read_group(0)["word"].type
    assert (kind == pa.string()) == comes_plain


def test_a_dictionary_that_the_footer_denies_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many values may point at one long one: nothing is read before the pages are looked at."""
    path = write(tmp_path / "a.parquet", use_dictionary=True)
    monkeypatch.setattr(parquet, "_is_plain", lambda metadata, name: True)
    with pytest.raises(LimitError, match="not as its footer says"):
        list(read_batches(path, ["word"]))


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
