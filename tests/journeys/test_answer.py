"""Questions on passages through the command line: train, measure, answer, compare."""

import json
from pathlib import Path

import pytest
from command_line import polyseme

TASK = """
[data]
train = "{folder}/train.json"
dev = "{folder}/dev.json"
test = "{folder}/dev.json"
reader.kind = "squad"
tokenizer_from = "en"

[embeddings.words]
vectors = {{ kind = "new", dim = 16 }}
trained = true

[network]
kind = "question_answering"
context = {{ dim = 16, dropout = 0.0 }}
window = 8
overlap = 4

[training]
epochs = 6
learning_rate = 0.02
batch = 8
"""
COLOURS = ["red", "blue", "green", "white"]


def written(first: int, last: int) -> str:
    """What colour a thing has; the answer to every tenth question is not in its passage."""
    paragraphs = []
    for number in range(first, last):
        one, other = COLOURS[number % 4], COLOURS[number // 4 % 4]
        context = f"The door of the old house is {one} . The roof of the new house is {other} ."
        answer = "purple" if number % 10 == 9 else one
        told = {"text": answer, "answer_start": max(0, context.find(answer))}
        asked = {"id": f"q{number}", "question": "What is the door ?", "answers": [told]}
        paragraphs.append({"context": context, "qas": [asked]})
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("answer")
    (made / "train.json").write_text(written(0, 40), encoding="utf-8")
    (made / "dev.json").write_text(written(40, 60), encoding="utf-8")
    task = made / "answers.toml"
    task.write_text(TASK.format(folder=made.as_posix()), encoding="utf-8")
    shown = polyseme("train", task, "--out", made / "answers")
    assert "4 with an answer that is not in the text" in " ".join(shown.stdout.split())
    return made


def test_questions_are_measured_by_both_measures(folder: Path) -> None:
    shown = polyseme("evaluate", folder / "answers").stdout
    assert "em" in shown
    assert "not in the text" in shown
    told = json.loads((folder / "answers/metrics.json").read_text(encoding="utf-8"))
    assert told["mean"] == pytest.approx(0.9)  # all but the two that no span answers


def test_an_answer_has_its_place_in_the_text_as_it_was_given(folder: Path) -> None:
    passage = "The  door of\tthe old house is green . The roof of the new house is red ."
    answered = polyseme(
        "predict", "--task", folder / "answers", "What is the door ?", passage, "--json"
    )
    found = json.loads(answered.stdout)
    assert found["answer"] == "green"
    assert passage[found["start"] : found["stop"]] == "green"
    shown = polyseme("predict", "--task", folder / "answers", "What is the door ?", passage)
    assert shown.stdout.startswith("green")


def test_every_line_of_a_file_is_answered_or_told(folder: Path, tmp_path: Path) -> None:
    asked, out = tmp_path / "asked.tsv", tmp_path / "answers.jsonl"
    asked.write_text("What is the door ?\tThe door is red .\nno tab\nWhat ?\t \n", encoding="utf-8")
    shown = polyseme("predict", "--task", folder / "answers", "--input-file", asked, "--out", out)
    assert "2 of 3 rows rejected: 2 unfit" in " ".join(shown.stdout.split())
    [line] = out.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["answer"] in "The door is red ."
