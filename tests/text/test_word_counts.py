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


def test_words_are_counted_over_all_shards(tmp_path: Path) -> None:
    first = write_shard(tmp_path / "1.parquet", [(["a", "b"], False), (["a"], True)])
    second = write_shard(tmp_path / "2.parquet", [(["a", "中"], False)])
    assert count([first, second], tmp_path) == [("a", 3, 1), ("b", 1, 0), ("中", 1, 0)]


def test_words_of_one_count_stand_in_the_order_of_spelling(tmp_path: Path) -> None:
    words = ["b", "a", "B", "é", "😀", "e", "中", "Z"]
    shard = write_shard(tmp_path / "1.parquet", [(words, False)])
    assert [word for word, _, _ in count([shard], tmp_path)] == sorted(words)


def test_the_number_of_spellings_is_returned(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "1.parquet", [(["a", "A", "a"], False)])
    assert count_words([shard], tmp_path / "v.parquet", threads=1) == 2


def test_a_corpus_without_words_has_an_empty_vocabulary(tmp_path: Path) -> None:
    assert count([write_shard(tmp_path / "1.parquet", [])], tmp_path) == []


def test_a_folder_with_a_name_like_a_glob_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "a*b[1]?"
    assert count([write_shard(folder / "1.parquet", [(["x"], False)])], folder) == [("x", 1, 0)]


@settings(max_examples=20, deadline=None)
@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)))
def test_counts_agree_with_a_plain_counter(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        shard = write_shard(Path(name) / "1.parquet", [(words, False)] if words else [])
        rows = count([shard], Path(name))
    assert {word: number for word, number, _ in rows} == Counter(words)
