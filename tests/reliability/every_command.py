"""Every command of the command line, one after the other, in one process; to be watched.

python -m reliability.every_command FOLDER

Then those that write are told to write into a folder that is read-only, and a line `locked` with
JSON tells of each its words, its exit code, and what it complained of. At last a model is evaluated
on a corpus that is read-only, which needs room for counting n-grams. Root may write everywhere:
`test_offline.py` starts this without that right.
"""

import json
import stat
import sys
from pathlib import Path

import h5py
from command_line import polyseme
from legacy.bilm_files import OPTIONS, arrays_for
from pretraining.making import rule_text
from tasks.cases import make_task, prepare_documents

from polyseme.cli.app import main

SMALL = (
    *("--preset", "elmo-teaching", "--set", "model.encoder.contextualizer.proj_size=16"),
    *("--set", "model.vocabulary.min_count=1", "--set", "batches.words=300"),
)
QUICK = ("--set", "training.epochs=1")


def write_old_weights(folder: Path) -> None:
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps(OPTIONS), encoding="utf-8")
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, array in arrays_for(OPTIONS).items():
            file[name] = array


def commands(folder: Path, task_file: Path) -> list[list[str]]:
    """The words after `polyseme`, in an order in which each finds what it needs."""
    documents = folder / "documents" / "corpus"
    corpus, model, task = folder / "corpus", folder / "model", folder / "names"
    lines: list[tuple[object, ...]] = [
        ("plan",),
        (
            *("prepare", folder / "text.txt", "--language", "en", "--layout", "lines"),
            *("--held-out", 0.2, "--workers", 2, "--out", corpus),
        ),
        ("plan", corpus, *SMALL, "--hours", 1),
        ("pretrain", corpus, *SMALL, "--steps", 3, "--out", model),
        ("evaluate", model, "--in", corpus),
        ("score", "--model", model, "The old cat purrs and purrs ."),
        ("generate", "--model", model, "The old", "--samples", 2, "--max-words", 5),
        ("embed", "--model", model, corpus, "--workers", 2, "--out", folder / "vectors"),
        ("vectors", "info", folder / "vectors", "--verify"),
        ("inspect", corpus, "--verify"),
        ("uses", "cat", "--in", corpus),
        ("collocates", "cat", "--in", corpus),
        ("keywords", "--in", corpus, "--where", "document<text.txt@5"),
        ("query", '"cat"', "--in", corpus),
        ("ngrams", "cat", "--in", corpus, "--min-frequency", 1),
        ("subcorpora", "part", "--in", corpus, "--where", "document<text.txt@5"),
        ("export", corpus, "--out", folder / "corpus.vrt"),
        ("senses", "and", "--in", corpus, "--model", model, "--groups", 2),
        (
            *("senses", "and", "--in", corpus, "--model", model, "--groups", 2),
            *("--out", folder / "and.judgments.tsv"),
        ),
        ("agreement", folder / "and.judgments.tsv"),
        ("judge", "and", "--in", corpus, "--annotators", "ana,ben", "--out", folder / "sheets"),
        (
            *("change", "and", "--in", corpus, "--model", model),
            *("--before", "document<text.txt@5", "--after", "document>=text.txt@5"),
        ),
        ("substitutes", "The old *cat* purrs .", "--model", model),
        (
            "index",
            "--model",
            model,
            corpus,
            "--words",
            "cat,and",
            "--workers",
            2,
            "--out",
            folder / "index",
        ),
        ("senses", "and", "--in", corpus, "--index", folder / "index", "--groups", 2),
        ("nearest", "The old *cat* purrs .", "--in", corpus, "--model", model),
        ("same", "The old *cat* purrs .", "The *cat* is old .", "--model", model),
        (
            *("edit", "and", "--in", corpus, "--model", model, "--groups", 2),
            *("--edits", folder / "edits.jsonl", "--rename", 1, "--name", "first"),
        ),
        (
            *("compare-models", corpus, "--presets", "elmo-teaching", "--minutes", 0.01),
            *("--out", folder / "models"),
        ),
        ("models",),
        ("doctor",),
        ("convert", "import", folder / "old", "--out", folder / "elmo", "--language", "en"),
        ("train", task_file, "--out", task, *QUICK),
        ("evaluate", task),
        ("predict", "--task", task, "word1 word10"),
        ("compare", task_file, "--out", folder / "compared", *QUICK),
        ("choices", documents, "--examples", 16, "--out", folder / "choices"),
    ]
    return [[str(word) for word in line] for line in lines]


def run(words: list[str]) -> int:
    """A command as `python -m polyseme` runs it; its exit code."""
    sys.argv = ["polyseme", *words]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def locked_commands(folder: Path, task: Path, locked: Path) -> list[tuple[object, ...]]:
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
        ("train", task, "--out", locked / "new", *QUICK),
        ("predict", "--task", folder / "names", "word1 word10", "--out", locked / "labels.jsonl"),
        ("predict", "--task", folder / "names", "--input-file", text,
         "--out", locked / "labels.jsonl"),
        ("compare", task, "--out", locked / "new", *QUICK),
        ("choices", folder / "documents/corpus", "--examples", 16, "--out", locked / "new"),
        ("pull", "someone/something", "--out", locked / "new"),
    ]  # fmt: skip


def try_locked(folder: Path, task: Path) -> None:
    locked = folder / "locked"
    locked.mkdir()
    (locked / "mine.txt").write_text("mine")
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    for words in locked_commands(folder, task, locked):
        tell(words)
    for path in (folder / "corpus").rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)
    (folder / "corpus").chmod(stat.S_IRUSR | stat.S_IXUSR)
    tell(("evaluate", folder / "model", "--in", folder / "corpus"))


def tell(words: tuple[object, ...]) -> None:
    done = polyseme(*map(str, words), code=None)
    told = {"words": [str(word) for word in words], "code": done.returncode}
    print("locked", json.dumps({**told, "stderr": done.stderr}), flush=True)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True)
    case = make_task(place)
    prepare_documents(place / "documents", 60)
    write_old_weights(place / "old")
    (place / "text.txt").write_text(rule_text(), encoding="utf-8")
    for line in commands(place, case.task):
        code = run(line)
        print("did", line[0], code, file=sys.stderr)
        if code:
            sys.exit(code)
    try_locked(place, case.task)
