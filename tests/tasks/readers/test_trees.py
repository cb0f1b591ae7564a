"""Labelled trees."""

from pathlib import Path

import pytest

from polyseme.tasks.families.classification import Classified
from tasks.readers.making import load, reader

TREE = "(3 (2 It) (4 (2 's) (4 (3 lovely) (2 film))))"


def test_the_label_of_the_root_is_that_of_the_sentence(tmp_path: Path) -> None:
    loaded = load(tmp_path, f"{TREE}\n\n(1 No)\n", reader("trees"))
    assert loaded.examples == [
        Classified(("It", "'s", "lovely", "film"), "3"),
        Classified(("No",), "1"),
    ]


def test_every_part_can_be_an_example(tmp_path: Path) -> None:
    loaded = load(tmp_path, TREE, reader("trees", subtrees=True))
    assert loaded.examples == [
        Classified(("It",), "2"),
        Classified(("'s",), "2"),
        Classified(("lovely",), "3"),
        Classified(("film",), "2"),
        Classified(("lovely", "film"), "4"),
        Classified(("'s", "lovely", "film"), "4"),
        Classified(("It", "'s", "lovely", "film"), "3"),
    ]
    assert (loaded.stats.read, loaded.stats.examples) == (1, 7)


def test_what_the_treebank_wrote_otherwise_is_read_as_meant(tmp_path: Path) -> None:
    text = r"(2 (2 -LRB-) (2 (2 Writer\/director) (2 (2 \*) (2 -RRB-))))"
    assert load(tmp_path, text, reader("trees")).examples == [
        Classified(("(", "Writer/director", "*", ")"), "2")
    ]


@pytest.mark.parametrize(
    "line",
    ["It 's", "(3 It", "(3 It) (2 is)", "(3 It))", "(3 )", "()", "((2 It))", "(", ")", "(3 It) x"],
)
def test_what_is_no_tree_is_rejected_with_its_line(tmp_path: Path, line: str) -> None:
    loaded = load(tmp_path, f"{TREE}\n{line}\n", reader("trees"))
    assert len(loaded.examples) == 1
    assert loaded.stats.reasons == {"not-a-tree": 1}
    assert "line 2" in loaded.stats.faults[0]


def test_a_tree_deeper_than_any_stack_does_no_harm(tmp_path: Path) -> None:
    deep = "(1 " * 50_000 + "x" + ")" * 50_000
    assert load(tmp_path, deep, reader("trees")).examples == [Classified(("x",), "1")]


def test_a_sentence_too_long_for_all_its_parts_is_rejected(tmp_path: Path) -> None:
    long = "(1 " + " ".join(["(1 x)"] * 2001) + ")"
    loaded = load(tmp_path, f"{TREE}\n{long}\n", reader("trees"))
    assert loaded.stats.reasons == {"too-long": 1}
