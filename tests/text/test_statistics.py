"""Figures about a corpus, worked out again by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from polyseme.text.word_counts import (
    VOCABULARY_SCHEMA,
    Bin,
    Coverage,
    Frequent,
    bin_lengths,
    coverage,
    most_frequent,
)


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
