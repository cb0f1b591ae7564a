"""Every spelling with its count, most frequent first.

Figures about a corpus, worked out again by hand.
"""

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.text.shards import ShardWriter
from polyseme.text.word_counts import (
    VOCABULARY_SCHEMA,
    Bin,
    Coverage,
    Frequent,
    bin_lengths,
    count_words,
    coverage,
    most_frequent,
)


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


def write_vocabulary(path: Path, counts: list[int]) -> Path:
    columns = [[f"w{i}" for i in range(len(counts))], counts, [0] * len(counts)]
    pq.write_table(pa.table(columns, schema=VOCABULARY_SCHEMA), path)
    return path


def test_every_sentence_is_in_exactly_one_bin_and_bins_have_no_gap() -> None:
    lengths = {str(n): n + 1 for n in range(1, 300)}
    bins = bin_lengths(lengths, width=10)
    assert sum(b.sentences for b in bins) == sum(lengths.values())
    assert (bins[0].low, bins[-1].high) == (1, None)
    assert [b.low for b in bins[1:]] == [b.high + 1 for b in bins[:-1] if b.high is not None]
    for length in (1, 9, 10, 19, 99, 100, 250):
        (hit,) = [b for b in bin_lengths({str(length): 1}, width=10) if b.sentences]
        assert hit.low <= length
        assert hit.high is None or length <= hit.high
    assert [Bin(10, 19, 0).label, Bin(100, None, 0).label] == ["10–19", "100+"]


def test_coverage_is_the_share_of_the_most_frequent(tmp_path: Path) -> None:
    def covered(counts: list[int]) -> list[Coverage]:
        return coverage(write_vocabulary(tmp_path / "v.parquet", counts), sum(counts))

    assert covered([3] * 1000 + [2] * 500) == [Coverage(1000, 0.75, 3), Coverage(1500, 1.0, 2)]
    assert covered([1] * 1000) == [Coverage(1000, 1.0, 1)]
    assert covered([]) == []


def test_the_most_frequent_are_the_first_and_no_more_than_there_are(tmp_path: Path) -> None:
    path = write_vocabulary(tmp_path / "v.parquet", [9, 5, 1])
    assert most_frequent(path, 2) == [Frequent("w0", 9), Frequent("w1", 5)]
    assert len(most_frequent(path, 10)) == 3
