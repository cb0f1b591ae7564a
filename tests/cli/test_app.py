import statistics
import time
from pathlib import Path

import pytest
from command_line import polyseme, polyseme_process
from slack import allowed


def test_help_answers_within_half_a_second() -> None:
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        polyseme_process("--help")
        seconds.append(time.monotonic() - began)
    # The fastest: a busy machine slows any program down, only we can make all five slow.
    assert min(seconds) < allowed(0.5), f"median {statistics.median(seconds):.2f} s"


def test_the_version_is_shown() -> None:
    assert polyseme("--version").stdout.startswith("polyseme ")


def test_a_mistyped_option_is_answered_with_the_near_one() -> None:
    result = polyseme("prepare", "x", "--languge", "en", code=2)
    assert "--language" in result.stderr


def test_a_mistyped_setting_is_answered_with_the_near_one() -> None:
    words = ("--language", "en", "--out", "y", "--set", "corpus.max_word=3")
    result = polyseme("prepare", "x", *words, code=2)
    assert "Did you mean 'max_words'?" in " ".join(result.stderr.split())


def test_a_missing_option_is_named_as_it_is_typed() -> None:
    result = polyseme("prepare", "x", "--out", "y", code=2)
    assert "--language is required" in " ".join(result.stderr.split())


def test_a_fraction_given_in_per_cent_is_answered_with_the_fraction() -> None:
    words = ("--language", "en", "--out", "y", "--held-out", "30")
    result = " ".join(polyseme("prepare", "x", *words, code=2).stderr.split())
    assert "--held-out = '30' does not fit" in result
    assert "It is a fraction: write 0.3 for 30 %." in result


@pytest.mark.parametrize(("given", "meant"), [("english", "en"), ("Germann", "de")])
def test_the_name_of_a_language_is_answered_with_its_code(
    given: str, meant: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("Some words.")
    command = ("prepare", tmp_path / "a.txt", "--language", given, "--out", tmp_path / "c")
    assert f"Did you mean {meant}?" in " ".join(polyseme(*command, code=2).stderr.split())


def test_brackets_in_help_are_shown_as_they_are() -> None:
    assert "[zh]" in polyseme("prepare", "--help").stdout
