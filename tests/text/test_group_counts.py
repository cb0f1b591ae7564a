"""Which words each row group has: all that was told is found again, and little is read for it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.storage.parquet import ParquetReader
from polyseme.text import group_counts
from polyseme.text.group_counts import GroupCountsWriter, find_row_groups

Groups = Sequence[Sequence[str]]
# NUL and the last code point sort first and last; the empty word is no word, but does no harm.
WORDS = st.sampled_from(["", "a", "b", "bank", "Bank", "ß", "中", "中文", "\x00", "\U0010ffff"])


def write(path: Path, groups: Groups) -> None:
    with GroupCountsWriter(path) as writer:
        for words in groups:
            writer.add(pa.array(words, pa.string()).dictionary_encode())


def plainly(groups: Groups, words: set[str]) -> list[tuple[str, int, int]]:
    counted = [Counter(group) for group in groups]
    return sorted(
        (word, number, count)
        for number, counts in enumerate(counted)
        for word, count in counts.items()
        if word in words
    )


@given(
    groups=st.lists(st.lists(WORDS, min_size=1, max_size=20), max_size=6),
    words=st.sets(WORDS),
    run=st.integers(1, 20),
    rows=st.integers(1, 5),
)
@settings(max_examples=150, deadline=None)
def test_what_is_found_is_what_was_counted(
    tmp_path_factory: pytest.TempPathFactory, groups: Groups, words: set[str], run: int, rows: int
) -> None:
    path = tmp_path_factory.mktemp("counts") / "a.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_counts, "_RUN", run)
        patch.setattr(group_counts, "_ROW_GROUP", rows)
        write(path, groups)
    assert sorted(find_row_groups(path, words)) == plainly(groups, words)


def test_row_groups_that_cannot_have_the_word_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_counts, "_ROW_GROUP", 2)
    write(tmp_path / "a.parquet", [["a", "b", "c", "d", "e", "f"]])
    read: list[int] = []
    plain = ParquetReader.read_group

    def note(reader: ParquetReader, group: int) -> object:
        read.append(group)
        return plain(reader, group)

    monkeypatch.setattr(ParquetReader, "read_group", note)
    assert list(find_row_groups(tmp_path / "a.parquet", {"d", "bb", "z"})) == [("d", 0, 1)]
    assert read == [1]


def test_a_long_shard_is_written_in_sorted_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_counts, "_RUN", 3)
    write(tmp_path / "a.parquet", [["b", "a"], ["a", "c"], ["b", "a"]])
    words = pq.read_table(tmp_path / "a.parquet")["word"].to_pylist()
    assert words == ["a", "a", "b", "c", "a", "b"]


def test_an_error_on_the_way_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(KeyError), GroupCountsWriter(tmp_path / "a.parquet"):
        raise KeyError("from the work")
