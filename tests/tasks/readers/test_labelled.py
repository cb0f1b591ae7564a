"""Lines that begin with their label.

Words to be found again.

Uses of an ambiguous word.

Labelled trees.
"""

from pathlib import Path

import pytest

from polyseme.errors import InputError
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.tagging import Tagged
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


def test_characters_carry_their_place_in_their_word(tmp_path: Path) -> None:
    text = "扬帆  远  东方人\n\n好\u3000的\n"
    assert load(tmp_path, text, reader("segmented")).examples == [
        Tagged(tuple("扬帆远东方人"), ("B", "E", "S", "B", "M", "E")),
        Tagged(("好", "的"), ("S", "S")),
    ]


def test_other_schemes_say_the_same(tmp_path: Path) -> None:
    config = reader("segmented", scheme="bio")
    assert load(tmp_path, "扬帆 远\n", config).examples == [
        Tagged(tuple("扬帆远"), ("B", "I", "B"))
    ]


def test_a_text_without_line_ends_is_no_sentence(tmp_path: Path) -> None:
    loaded = load(tmp_path, "好\n" + "好 的 " * 6000, reader("segmented"))
    assert len(loaded.examples) == 1
    assert loaded.stats.reasons == {"too-long": 1}
    assert "line 2" in loaded.stats.faults[0]


SENSES = '{"0": "apple_inc", "1": "apple_fruit"}'


def make(folder: Path, gold: str, names: str | None = SENSES) -> None:
    (folder / "train.gold.txt").write_text(gold)
    if names is not None:
        (folder / "classes_map.txt").write_text(names)


def test_a_use_has_its_word_marked_and_its_sense_named(tmp_path: Path) -> None:
    make(tmp_path, "1\r\n0\r\n")
    loaded = load(tmp_path, "1\tan apple a day\n0\tapple sells", reader("senses"), "train.data.txt")
    assert loaded.examples == [
        Classified(("an", "apple", "a", "day"), "apple_fruit", target_index=1),
        Classified(("apple", "sells"), "apple_inc", target_index=0),
    ]


def test_without_names_a_sense_is_its_number(tmp_path: Path) -> None:
    make(tmp_path, "1\n", None)
    loaded = load(tmp_path, "1\tan apple\n", reader("senses"), "train.data.txt")
    assert loaded.examples == [Classified(("an", "apple"), "1", target_index=1)]


def test_places_and_senses_that_do_not_exist_are_rejected(tmp_path: Path) -> None:
    make(tmp_path, "1\n1\n1\n7\n")
    text = "1\tan apple\n2\tan apple\nan apple\n0\tapple\n"
    loaded = load(tmp_path, text, reader("senses"), "train.data.txt")
    assert len(loaded.examples) == 1
    assert loaded.stats.reasons == {"no-such-word": 2, "no-such-sense": 1}
    assert "line 2" in loaded.stats.faults[0]


@pytest.mark.parametrize("gold", ["1\n", "1\n1\n1\n", "1\n\n"])
def test_files_of_different_length_are_refused(tmp_path: Path, gold: str) -> None:
    make(tmp_path, gold)
    with pytest.raises(InputError, match="text in only one"):
        load(tmp_path, "1\tan apple\n0\tapple\n", reader("senses"), "train.data.txt")


def test_only_a_data_file_has_senses_beside_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.data\.txt"):
        load(tmp_path, "1\tan apple\n", reader("senses"), "train.txt")


def test_names_that_are_no_names_are_refused(tmp_path: Path) -> None:
    for names in ("[1]", "{", "[" * 100_000):
        make(tmp_path, "1\n", names)
        with pytest.raises(InputError, match="classes_map"):
            load(tmp_path, "1\tan apple\n", reader("senses"), "train.data.txt")


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
