"""Which of several, through the command line: from a corpus to a ranking."""

import json
from pathlib import Path

import pytest
from command_line import polyseme
from tasks.cases import prepare_documents

TASK = """
[data]
train = "{folder}/choices/train.jsonl"
dev = "{folder}/choices/dev.jsonl"
test = "{folder}/choices/test.jsonl"
reader.kind = "choices"
tokenizer_from = "en"

[embeddings.words]
vectors = {{ kind = "new", dim = 32 }}
trained = true

[network]
kind = "choice"
context = {{ dim = 32, dropout = 0.0 }}

[training]
epochs = 25
patience = 25
learning_rate = 0.005
batch = 8
measure_every = 5
"""
LETTERS = "bcdefghijk"


def row(number: int) -> str:
    """Right is the choice that ends as the text begins."""
    word = LETTERS[number % 10]
    choices = [f"the door of {LETTERS[(number + step) % 10]}" for step in (3, 6, 9)]
    choices.insert(number % 4, f"the door of {word}")
    return json.dumps({"text": f"{word} has a door", "choices": choices, "label": number % 4})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("choice")
    (made / "choices").mkdir()
    for name, (first, last) in {"train": (0, 80), "dev": (80, 100), "test": (100, 120)}.items():
        rows = [row(number) for number in range(first, last)]
        if name == "train":
            rows += ["{}", "no JSON", json.dumps({"text": "a", "choices": ["b", "c"], "label": 5})]
        (made / f"choices/{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    task = made / "choose.toml"
    task.write_text(TASK.format(folder=made.as_posix()), encoding="utf-8")
    shown = " ".join(polyseme("train", task, "--out", made / "choose").stdout.split())
    assert "3 of 83 rows rejected" in shown
    return made


def test_both_measures_are_told_beside_chance(folder: Path) -> None:
    shown = polyseme("evaluate", folder / "choose").stdout
    assert "mrr" in shown
    assert "by chance" in shown
    told = json.loads((folder / "choose/metrics.json").read_text(encoding="utf-8"))
    assert told["measure"] == "accuracy"
    assert told["mean"] == 1  # chance is a quarter


def test_choices_are_ranked(folder: Path) -> None:
    texts = ("c has a door", "the door of f", "the door of c", "the door of i")
    found = json.loads(polyseme("predict", "--task", folder / "choose", *texts, "--json").stdout)
    assert found["best"] == 1
    assert found["choices"] == list(texts[1:])
    assert sum(found["probabilities"]) == pytest.approx(1, abs=1e-5)
    first, *others = polyseme("predict", "--task", folder / "choose", *texts).stdout.splitlines()
    assert first.startswith("c has a door")
    assert others[0].endswith("the door of c")
    assert len(others) == 3  # a line a choice
    told = polyseme(
        "predict", "--task", folder / "choose", "c has a door", "the door", code=66
    ).stderr
    assert "give a text, then 2 to 256 choices" in " ".join(told.split())


def test_a_line_of_a_file_has_a_text_and_its_choices(folder: Path, tmp_path: Path) -> None:
    asked, out = tmp_path / "asked.tsv", tmp_path / "found.jsonl"
    asked.write_text("d has a door\tthe door of g\tthe door of d\nno tab\n", encoding="utf-8")
    shown = polyseme(
        "predict", "--task", folder / "choose", "--input-file", asked, "--out", out
    ).stdout
    assert "1 of 2 rows rejected: 1 unfit" in " ".join(shown.split())
    [line] = out.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["best"] == 1


def test_a_corpus_gives_choices_that_a_task_learns_from(folder: Path, tmp_path: Path) -> None:
    corpus, out = prepare_documents(tmp_path / "made", 60), tmp_path / "choices"
    shown = polyseme("choices", corpus, "--examples", "24", "--choices", "3", "--out", out).stdout
    assert "train.jsonl: 24 examples" in " ".join(shown.split())
    data = [f"--set=data.{name}={out / name}.jsonl" for name in ("train", "dev", "test")]
    trained = tmp_path / "next"
    quick = ["--set=training.epochs=1", "--out", str(trained)]
    polyseme("train", folder / "choose.toml", *data, *quick)
    assert "3 examples" in polyseme("evaluate", trained).stdout
    again = polyseme("choices", corpus, "--examples", "24", "--out", out, code=74).stderr
    assert "train.jsonl already" in again
