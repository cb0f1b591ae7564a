"""Lines that begin with their label.

Words to be found again.

Uses of an ambiguous word.

Labelled trees.
"""

from pathlib import Path
from typing import Any

import pytest

from polyseme.errors import InputError
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.tagging import Tagged
from tasks.readers.making import load, reader

TREE = "(3 (2 It) (4 (2 's) (4 (3 lovely) (2 film))))"
WHOLE = Classified(("It", "'s", "lovely", "film"), "3")


def labelled(text: str, label: str) -> Classified:
    return Classified(tuple(text.split()), label)


@pytest.mark.parametrize(
    ("kind", "settings", "text", "expected"),
    [
        ("labelled", {}, "0 How far is it ?\n\n__label__x yes\n",
         [labelled("How far is it ?", "0"), labelled("yes", "__label__x")]),
        ("labelled", {"is_split": False}, "pos 很好  吃\n", [Classified("很好  吃", "pos")]),
        # A line end of another alphabet does not end a line.
        ("labelled", {"encoding": "latin-1"}, b"1 caf\xe9 a\x85b\n", [labelled("café a b", "1")]),
        ("segmented", {}, "扬帆  远  东方人\n\n好\u3000的\n",
         [Tagged(tuple("扬帆远东方人"), tuple("BESBME")), Tagged(("好", "的"), ("S", "S"))]),
        ("segmented", {"scheme": "bio"}, "扬帆 远\n", [Tagged(tuple("扬帆远"), tuple("BIB"))]),
        ("trees", {}, f"{TREE}\n\n(1 No)\n", [WHOLE, labelled("No", "1")]),
        ("trees", {"subtrees": True}, TREE,
         [labelled("It", "2"), labelled("'s", "2"), labelled("lovely", "3"), labelled("film", "2"),
          labelled("lovely film", "4"), labelled("'s lovely film", "4"), WHOLE]),
        # What the treebank wrote otherwise is read as meant.
        ("trees", {}, r"(2 (2 -LRB-) (2 (2 Writer\/director) (2 (2 \*) (2 -RRB-))))",
         [labelled("( Writer/director * )", "2")]),
        ("trees", {}, "(1 " * 50_000 + "x" + ")" * 50_000, [labelled("x", "1")]),
    ],
)  # fmt: skip
def test_lines_are_read_as_they_are_meant(
    tmp_path: Path, kind: str, settings: dict[str, Any], text: str | bytes, expected: list[Any]
) -> None:
    loaded = load(tmp_path, text, reader(kind, **settings))
    assert (loaded.examples, loaded.stats.reasons) == (expected, {})


@pytest.mark.parametrize(
    ("kind", "good", "bad", "reason"),
    [
        ("labelled", "0 yes", "1 ", "no-text"),
        ("segmented", "好", "好 的 " * 6000, "too-long"),
        ("trees", TREE, "(1 " + " ".join(["(1 x)"] * 2001) + ")", "too-long"),
        *(
            ("trees", TREE, line, "not-a-tree")
            for line in ("It 's", "(3 It", "(3 It) (2 is)", "(3 It))", "(3 )", "()", "((2 It))",
                         "(", ")", "(3 It) x")
        ),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_rejected_by_its_number(
    tmp_path: Path, kind: str, good: str, bad: str, reason: str
) -> None:
    loaded = load(tmp_path, f"{good}\n{bad}\n", reader(kind))
    assert (len(loaded.examples), loaded.stats.reasons) == (1, {reason: 1})
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


@pytest.mark.parametrize(
    ("gold", "names", "file", "message"),
    [
        *((gold, SENSES, "train.data.txt", "text in only one") for gold in ("1\n", "1\n\n")),
        ("1\n", SENSES, "train.txt", r"\.data\.txt"),
        *(("1\n", bad, "train.data.txt", "classes_map") for bad in ("[1]", "{", "[" * 100_000)),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, gold: str, names: str, file: str, message: str
) -> None:
    make(tmp_path, gold, names)
    with pytest.raises(InputError, match=message):
        load(tmp_path, "1\tan apple\n0\tapple\n", reader("senses"), file)


def test_places_and_senses_that_do_not_exist_are_rejected(tmp_path: Path) -> None:
    make(tmp_path, "1\n1\n1\n7\n")
    text = "1\tan apple\n2\tan apple\nan apple\n0\tapple\n"
    loaded = load(tmp_path, text, reader("senses"), "train.data.txt")
    assert len(loaded.examples) == 1
    assert loaded.stats.reasons == {"no-such-word": 2, "no-such-sense": 1}
    assert "line 2" in loaded.stats.faults[0]
