"""What is told of rows that gave no example."""

from polyseme.tasks.example_stats import ExampleStats
from polyseme.text.records import Rejected


def test_counts_add_up_and_the_summary_says_why() -> None:
    stats = ExampleStats()
    stats.keep(1)
    stats.keep(3)
    stats.reject(Rejected(7, "no-label", "some text", "in column 'label'"), "train.tsv")
    stats.reject(Rejected(9, "no-label", ""), "train.tsv")
    stats.reject(Rejected(9, "no-text", ""), "train.tsv")
    assert stats.read == stats.kept + stats.rejected == 5
    assert stats.summary() == "4 examples; 3 of 5 rows rejected: 2 no-label, 1 no-text"
    assert stats.faults[0] == "train.tsv, line 7: no-label (in column 'label'): 'some text'"


def test_nothing_is_said_of_faults_where_there_are_none() -> None:
    stats = ExampleStats()
    stats.keep(1)
    assert stats.summary() == "1 examples"


def test_a_file_full_of_faults_fills_neither_memory_nor_screen() -> None:
    stats = ExampleStats()
    for line in range(1000):
        stats.reject(Rejected(line, "no-text", "x" * 1000), "train.tsv")
    assert stats.rejected == 1000
    assert sum(map(len, stats.faults)) < 4000
