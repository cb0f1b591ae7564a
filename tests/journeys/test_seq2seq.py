"""Texts rewritten by a trained task, through the command line."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import polyseme

TASK = """
[data]
train = "{folder}/pairs.jsonl"
dev = "{folder}/pairs.jsonl"
test = "{folder}/pairs.jsonl"
reader = {{ kind = "table", text = "old", target = "new" }}
tokenizer_from = "en"

[embeddings.words]
vectors = {{ kind = "new", dim = 16 }}
trained = true
unk_dropout = 0.2

[network]
kind = "seq2seq"
context = {{ dim = 32, dropout = 0.0 }}
decoder = {{ dim = 32, dropout = 0.0, max_length = 12, beam = 2 }}
vocabulary = 5

[training]
epochs = 30
patience = 30
learning_rate = 0.02
batch = 8
measure_every = 5
"""
NAMES = ["Anna", "Ben", "Cora", "Dan", "Eve", "Finn", "Greta", "Hugo", "Ida", "Jack"]


@dataclass(frozen=True)
class Case:
    """A folder, and the task trained in it."""

    folder: Path
    trained: Path


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("seq2seq")
    rows = [
        {"old": f"{old} {name}.", "new": f"{new} {name}."}
        for old, new in (("thou seest", "you see"), ("I behold", "I see"))
        for name in NAMES
    ]
    lines = [json.dumps(row) for row in [*rows, {"old": "no target"}, {"old": " ", "new": "x"}]]
    (folder / "pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    task = folder / "old.toml"
    task.write_text(TASK.format(folder=folder.as_posix()), encoding="utf-8")
    shown = polyseme("train", task, "--out", folder / "trained")
    assert "bleu on the development data" in shown.stdout
    assert "2 of 22 rows rejected: 2 no-text" in " ".join(shown.stdout.split())
    return Case(folder, folder / "trained")


def test_both_measures_are_told(case: Case) -> None:
    shown = polyseme("evaluate", case.trained).stdout
    assert "chrf" in shown
    told = json.loads((case.trained / "metrics.json").read_text(encoding="utf-8"))
    assert told["measure"] == "bleu"
    assert told["mean"] > 0.9


def test_a_text_is_rewritten_sentence_by_sentence_and_new_names_are_copied(case: Case) -> None:
    shown = polyseme("predict", "--task", case.trained, "Thou seest Anna. I behold Zebedee.").stdout
    assert "I behold Zebedee .  →  I see Zebedee ." in shown


def test_a_file_is_rewritten_line_by_line(case: Case, tmp_path: Path) -> None:
    texts, out = tmp_path / "old.txt", tmp_path / "new.jsonl"
    texts.write_text("thou seest Ben.\n\nI behold Eve.\n", encoding="utf-8")
    polyseme("predict", "--task", case.trained, "--input-file", texts, "--out", out)
    told = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in told] == ["you see Ben .", "I see Eve ."]


def test_an_empty_text_and_a_measure_of_labels_are_refused(case: Case) -> None:
    assert "no word" in polyseme("predict", "--task", case.trained, "", code=66).stderr
    other = case.folder / "other.toml"
    settings = (case.folder / "old.toml").read_text(encoding="utf-8")
    other.write_text(f'measure = "f1"\n{settings}', encoding="utf-8")
    shown = polyseme("train", other, "--out", case.folder / "x", code=2)
    assert "bleu, chrf" in " ".join(shown.stderr.split())
