"""Reading Parquet: text as dictionaries, and as it is where nothing can be hidden in it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyseme.limits import LimitError
from polyseme.storage import parquet
from polyseme.storage.parquet import ParquetReader, read_batches

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
