"""Clusters of mentions: trained, measured, and found in a text, through the command line."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import polyseme

TASK = """
[data]
train = "{folder}/train.conll"
dev = "{folder}/dev.conll"
test = "{folder}/dev.conll"
reader.kind = "coreference"
tokenizer_from = "en"

[embeddings.words]
vectors = {{ kind = "new", dim = 16 }}
trained = true

[network]
kind = "coreference"
context = {{ dim = 16, dropout = 0.0 }}
spans = {{ max_width = 2, per_word = 1.0, dim = 32 }}
windows = {{ words = 32, overlap = 16 }}

[training]
epochs = 15
learning_rate = 0.02
batch = 1
patience = 15
"""
SENTENCES = {
    "Anna": ["Anna/(1) came/- home/- ./-", "She/(1) was/- tired/- ./-"],
    "Ben": ["Ben/(2) came/- home/- ./-", "He/(2) was/- tired/- ./-"],
}


@dataclass(frozen=True)
class Case:
    """A folder, and the task trained in it."""

    folder: Path
    trained: Path


def written(number: int) -> str:
    """A document: two or more sentences on each of Anna and Ben, in one order or the other."""
    names = ["Anna", "Ben"][:: 1 if number % 2 else -1] * (1 + number % 2)
    lines = [f"#begin document (tale_{number}); part 0"]
    for pair in (pair for name in names for pair in SENTENCES[name]):
        for place, word in enumerate(pair.split()):
            lines.append("\t".join(["tale", "0", str(place), *word.split("/")]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("coreference")
    for part, numbers in {"train": range(12), "dev": range(12, 16)}.items():
        (folder / f"{part}.conll").write_text("".join(map(written, numbers)), encoding="utf-8")
    task = folder / "coreference.toml"
    task.write_text(TASK.format(folder=folder.as_posix()), encoding="utf-8")
    shown = polyseme("train", task, "--out", folder / "trained")
    assert "conll-f1 on the development data" in shown.stdout
    return Case(folder, folder / "trained")


def test_every_measure_is_told(case: Case) -> None:
    shown = polyseme("evaluate", case.trained).stdout
    for measure in ("muc", "b-cubed", "ceaf-e", "mention-f1"):
        assert re.search(rf"{measure}\W+100\.00\W+100\.00\W+100\.00", shown), shown
    assert "4 examples" in shown


def test_clusters_of_a_text_are_shown_with_their_numbers(case: Case) -> None:
    shown = polyseme(
        "predict", "--task", case.trained, "Anna came home. She was tired. Ben came home."
    )
    assert "[Anna]1 came home . [She]1 was tired . Ben came home ." in shown.stdout


def test_a_file_is_one_document_however_long(case: Case, tmp_path: Path) -> None:
    tale, out = tmp_path / "tale.txt", tmp_path / "tale.jsonl"
    two = "Anna came home.\nShe was tired.\n\nBen came home.\nHe was tired.\n\n"
    tale.write_text(two * 15, encoding="utf-8")
    shown = polyseme("predict", "--task", case.trained, "--input-file", tale, "--out", out)
    assert "1 examples" in shown.stdout
    [told] = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    words = [word for sentence in told["sentences"] for word in sentence]
    assert len(words) == 15 * 16
    # Read in windows of 32 words, and yet there is one Anna, and one Ben.
    found = [{words[start] for start, _ in cluster} for cluster in told["clusters"]]
    assert found == [{"Anna", "She"}, {"Ben", "He"}]
    assert [len(cluster) for cluster in told["clusters"]] == [30, 30]


def test_a_page_in_colour_is_written_where_the_name_asks_for_it(case: Case, tmp_path: Path) -> None:
    out = tmp_path / "tale.html"
    polyseme(
        "predict", "--task", case.trained, "Anna came home. She was <b>tired</b>.", "--out", out
    )
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert '<span style="background:lightcyan">[Anna]<sub>1</sub></span> came' in page
    assert "<b>" not in page


def test_a_file_without_a_word_is_told_and_not_a_crash(case: Case, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf-8")
    command = (
        "predict",
        "--task",
        case.trained,
        "--input-file",
        tmp_path / "empty.txt",
        "--out",
        tmp_path / "o",
    )
    assert "0 examples" in polyseme(*command).stdout
    assert "no word" in polyseme("predict", "--task", case.trained, " ", code=66).stderr
