"""Texts labelled by a trained task, through the command line."""

import json
from pathlib import Path

import pytest
from command_line import polyseme
from tasks.cases import TaskCase, make_task


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    made = make_task(tmp_path_factory.mktemp("predict"))
    polyseme("train", made.task, "--out", made.folder / "names")
    return made


def test_names_are_marked_in_running_text(case: TaskCase) -> None:
    shown = polyseme("predict", "--task", case.folder / "names", "word1 word2 word10 word3")
    assert "word10[NAME]" in shown.stdout


def test_json_lines_are_printed_on_request(case: TaskCase) -> None:
    shown = polyseme("predict", "--task", case.folder / "names", "word1 word10", "--json")
    assert json.loads(shown.stdout) == {"words": ["word1", "word10"], "labels": ["O", "B-NAME"]}


def test_probabilities_are_told_on_request_in_every_form(case: TaskCase, tmp_path: Path) -> None:
    names, asked = case.folder / "names", ("word1 word10", "--probabilities")
    [line] = polyseme("predict", "--task", names, *asked, "--json").stdout.splitlines()
    told = json.loads(line)
    assert told["labels"] == ["O", "B-NAME"]
    assert len(told["probabilities"]) == 2
    shown = polyseme("predict", "--task", names, *asked).stdout
    assert f"word10/B-NAME {told['probabilities'][1]:.2f}" in shown
    texts, out = tmp_path / "texts.txt", tmp_path / "labels.jsonl"
    texts.write_text("word1 word10\n", encoding="utf-8")
    polyseme("predict", "--task", names, "--input-file", texts, "--out", out, "--probabilities")
    assert json.loads(out.read_text(encoding="utf-8")) == told


def test_every_line_of_a_file_is_labelled_or_told(case: TaskCase, tmp_path: Path) -> None:
    texts, out = tmp_path / "texts.txt", tmp_path / "labels.jsonl"
    texts.write_bytes(b"word1 word10 word3\n\nword4\n\xff\xff\n")
    shown = polyseme(
        "predict", "--task", case.folder / "names", "--input-file", texts, "--out", out
    )
    assert "1 of 3 rows rejected: 1 not-utf-8" in " ".join(shown.stdout.split())
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [line["words"] for line in lines] == [["word1", "word10", "word3"], ["word4"]]
    assert lines[0]["labels"] == ["O", "B-NAME", "O"]


def test_what_is_missing_is_said(case: TaskCase, tmp_path: Path) -> None:
    shown = polyseme("predict", "--task", case.folder / "names", code=2)
    assert "--input-file" in shown.stderr
    shown = polyseme("predict", "--task", tmp_path, "word1", code=65)
    assert "polyseme train" in " ".join(shown.stderr.split())
