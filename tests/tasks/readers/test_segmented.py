"""Words to be found again."""

from pathlib import Path

from polyseme.tasks.families.tagging import Tagged
from tasks.readers.making import load, reader


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
