"""Lines that begin with their label."""

from pathlib import Path

from polyseme.tasks.families.classification import Classified
from tasks.readers.making import load, reader


def test_the_first_word_is_the_label(tmp_path: Path) -> None:
    loaded = load(tmp_path, "0 How far is it ?\n\n__label__x yes\n1 \n", reader("labelled"))
    assert loaded.examples == [
        Classified(("How", "far", "is", "it", "?"), "0"),
        Classified(("yes",), "__label__x"),
    ]
    assert loaded.stats.reasons == {"no-text": 1}
    assert "line 4" in loaded.stats.faults[0]


def test_running_text_stays_as_it_is(tmp_path: Path) -> None:
    config = reader("labelled", is_split=False)
    assert load(tmp_path, "pos 很好  吃\n", config).examples == [Classified("很好  吃", "pos")]


def test_a_line_end_of_another_alphabet_does_not_end_a_line(tmp_path: Path) -> None:
    config = reader("labelled", encoding="latin-1")
    loaded = load(tmp_path, b"1 caf\xe9 a\x85b\n", config)
    assert loaded.stats.read == 1
