"""Every command that writes, told to write where nobody may: into a folder that is read-only.

python -m reliability.read_only FOLDER

Root may write everywhere: `test_read_only.py` starts this without that right. Prints a line of JSON
for each command: its words, its exit code, what it complained of. At last a model is evaluated on a
corpus that is read-only, which needs room for counting n-grams.
"""

import json
import stat
import sys
from pathlib import Path

from command_line import polyseme
from pretraining.making import rule_text
from tasks.cases import make_task, prepare_documents

from reliability.every_command import SMALL, write_old_weights

_QUICK = ("--set", "training.epochs=1")


def prepare_inputs(folder: Path) -> Path:
    """What the commands read; the path of a task's description."""
    case = make_task(folder)
    prepare_documents(folder / "documents", 60)
    write_old_weights(folder / "old")
    (folder / "text.txt").write_text(rule_text(), encoding="utf-8")
    prepared = ("--language", "en", "--layout", "lines", "--held-out", "0.2", "--workers", "1")
    polyseme("prepare", folder / "text.txt", *prepared, "--out", folder / "corpus")
    polyseme("pretrain", folder / "corpus", *SMALL, "--steps", "3", "--out", folder / "model")
    polyseme("train", case.task, "--out", folder / "task", *_QUICK)
    return case.task


def commands(folder: Path, task: Path, locked: Path) -> list[tuple[object, ...]]:
    """Each would leave something in the folder `locked`."""
    corpus, model = folder / "corpus", folder / "model"
    of_word = ("and", "--in", corpus, "--model", model)
    sides = ("--before", "document<text.txt@5", "--after", "document>=text.txt@5")
    text, use = folder / "text.txt", "The old *cat* purrs ."
    return [
        ("prepare", text, "--language", "en", "--out", locked),
        ("prepare", text, "--language", "en", "--out", locked / "new"),
        ("inspect", corpus, "--plot", locked / "plot.png"),
        ("pretrain", corpus, *SMALL, "--steps", 3, "--out", locked / "new"),
        ("compare-models", corpus, "--presets", "elmo-teaching", "--minutes", 0.01,
         "--out", locked / "new"),
        ("embed", "--model", model, corpus, "--out", locked / "new"),
        ("index", "--model", model, corpus, "--words", "cat,and", "--out", locked / "new"),
        ("uses", "cat", "--in", corpus, "--out", locked / "uses.csv"),
        ("senses", *of_word, "--groups", 2, "--out", locked / "senses.csv"),
        ("senses", *of_word, "--groups", 2, "--out", locked / "senses.conllu"),
        ("senses", *of_word, "--groups", 2, "--report", locked / "senses.html"),
        ("change", *of_word, *sides, "--report", locked / "change.html"),
        ("change", "--all", "--in", corpus, "--model", model, *sides, "--permutations", 199,
         "--min-uses", 20, "--out", locked / "change.csv"),
        ("edit", *of_word, "--groups", 2, "--edits", locked / "edits.jsonl", "--rename", 1,
         "--name", "first"),
        ("nearest", use, "--in", corpus, "--model", model, "--out", locked / "nearest.csv"),
        ("convert", "import", folder / "old", "--out", locked / "new", "--language", "en"),
        ("train", task, "--out", locked / "new", *_QUICK),
        ("predict", "--task", folder / "task", "word1 word10", "--out", locked / "labels.jsonl"),
        ("predict", "--task", folder / "task", "--input-file", text,
         "--out", locked / "labels.jsonl"),
        ("compare", task, "--out", locked / "new", *_QUICK),
        ("choices", folder / "documents", "--examples", 16, "--out", locked / "new"),
        ("pull", "someone/something", "--out", locked / "new"),
    ]  # fmt: skip


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    task = prepare_inputs(folder)
    locked = folder / "locked"
    locked.mkdir()
    (locked / "mine.txt").write_text("mine")
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    for words in commands(folder, task, locked):
        done = polyseme(*map(str, words), code=None)
        told = {"words": [str(word) for word in words], "code": done.returncode}
        print(json.dumps({**told, "stderr": done.stderr}), flush=True)
    for path in (folder / "corpus").rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)
    (folder / "corpus").chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = polyseme("evaluate", folder / "model", "--in", folder / "corpus", code=None)
    print(json.dumps({"evaluated": done.returncode, "stderr": done.stderr}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
