"""Uses of an ambiguous word."""

from pathlib import Path

import pytest

from polyseme.errors import InputError
from polyseme.tasks.families.classification import Classified
from tasks.readers.making import load, reader

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
