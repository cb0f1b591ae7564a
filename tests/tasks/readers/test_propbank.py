"""Predicates and their arguments."""

from pathlib import Path

import pytest

from polyseme.tasks.families.tagging import Tagged
from tasks.readers.making import load, reader

TEXT = """# sent_id = 1
0\tBush\tNNP\t-\t-\t(ARG0*)\t*
1\tnominated\tVBD\tnominate\tnominate.01\t(V*)\t*
2\ttwo\tCD\t-\t-\t(ARG1*\t(ARG0*
3\tmen\tNNS\t-\t-\t*)\t*)
4\tto\tTO\t-\t-\t(ARG2*\t*
5\treplace\tVB\treplace\treplace.01\t*\t(V*)
6\tjudges\tNNS\t-\t-\t*)\t(ARG1*)

# sent_id = 2
0\tHello\tUH\t-\t-

"""
WORDS = ("Bush", "nominated", "two", "men", "to", "replace", "judges")


def test_each_predicate_is_an_example_of_its_own(tmp_path: Path) -> None:
    loaded = load(tmp_path, TEXT, reader("propbank"))
    assert loaded.examples == [
        Tagged(
            WORDS,
            ("B-ARG0", "B-V", "B-ARG1", "I-ARG1", "B-ARG2", "I-ARG2", "I-ARG2"),
            target_index=1,
        ),
        Tagged(WORDS, ("O", "O", "B-ARG0", "I-ARG0", "O", "B-V", "B-ARG1"), target_index=5),
    ]


def test_sentences_without_a_predicate_are_counted(tmp_path: Path) -> None:
    stats = load(tmp_path, TEXT, reader("propbank")).stats
    assert (stats.read, stats.kept, stats.examples) == (2, 1, 2)
    assert stats.reasons == {"no-predicate": 1}


def test_other_layouts_are_a_matter_of_numbers(tmp_path: Path) -> None:
    text = "She - (A0*)\nruns run.01 (V*)\n"
    config = reader("propbank", word=1, predicate=2, arguments=3)
    assert load(tmp_path, text, config).examples == [
        Tagged(("She", "runs"), ("B-A0", "B-V"), target_index=1)
    ]


@pytest.mark.parametrize(
    ("brackets", "place"),
    [
        (["(A0*", "*", "*"], 3),  # never closed
        (["*", "*)", "*"], 2),  # never opened
        (["(A0*", "(A1*)", "*)"], 2),  # one in the other
        (["(A0(A1*)", "*", "*"], 1),
        (["(*)", "*", "*"], 1),  # no name
        (["A0*)", "*", "*"], 1),
        (["(A0*))", "*", "*"], 1),
        (["*", "-", "*"], 2),  # no star
    ],
)
def test_brackets_that_do_not_match_spoil_the_sentence_and_are_named(
    tmp_path: Path, brackets: list[str], place: int
) -> None:
    rows = [f"{i}\tw\tX\t-\t{'r.01' if i == 0 else '-'}\t{b}" for i, b in enumerate(brackets)]
    good = "0\tgo\tVB\tgo\tgo.01\t(V*)\n"
    loaded = load(tmp_path, "\n".join(rows) + "\n\n" + good, reader("propbank"))
    assert loaded.examples == [Tagged(("go",), ("B-V",), target_index=0)]
    assert loaded.stats.reasons == {"brackets-do-not-match": 1}
    assert f"line {place}:" in loaded.stats.faults[0]


def test_as_many_columns_as_predicates_or_the_sentence_is_rejected(tmp_path: Path) -> None:
    good = "0\tgo\tVB\tgo\tgo.01\t(V*)\n\n"
    loaded = load(tmp_path, good + "0\tgo\tVB\tgo\tgo.01\t(V*)\t*\n", reader("propbank"))
    assert loaded.stats.reasons == {"wrong-number-of-columns": 1}
    assert "line 3" in loaded.stats.faults[0]
