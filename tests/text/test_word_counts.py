"""Every spelling with its count, most frequent first."""

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.text.shards import ShardWriter
from polyseme.text.word_counts import count_words


def write_shard(path: Path, sentences: list[tuple[list[str], bool]]) -> Path:
    with ShardWriter(path, ()) as writer:
        for position, (words, is_held_out) in enumerate(sentences):
            row = ("d", position, is_held_out, " ".join(words), words, [0] * len(words))
            writer.add((f"d:{position}:0", *row))
    return path


def count(shards: list[Path], folder: Path) -> list[tuple[str, int, int]]:
    final = folder / "vocabulary.parquet"
    count_words(shards, final, threads=1)
    return [(r["word"], r["count"], r["held_out"]) for r in pq.read_table(final).to_pylist()]


def test_words_are_counted_over_all_shards_and_stand_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "a*b[1]?"  # a name like a glob
    assert count([write_shard(folder / "0.parquet", [])], folder) == []
    first = write_shard(folder / "1.parquet", [(["a", "b"], False), (["a"], True)])
    second = write_shard(folder / "2.parquet", [(["a", "中", "B", "é", "😀", "A"], False)])
    found = count([first, second], folder)
    assert found[:2] == [("a", 3, 1), ("A", 1, 0)]
    assert [word for word, _, _ in found[1:]] == sorted(["A", "B", "b", "é", "中", "😀"])
    assert count_words([first, second], folder / "v.parquet", threads=1) == len(found)


@settings(max_examples=20, deadline=None)
@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)))
def test_counts_agree_with_a_plain_counter(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        shard = write_shard(Path(name) / "1.parquet", [(words, False)] if words else [])
        rows = count([shard], Path(name))
    assert {word: number for word, number, _ in rows} == Counter(words)
