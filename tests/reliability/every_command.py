"""Every command of the command line, one after the other, in one process; to be watched.

python -m reliability.every_command FOLDER
"""

import json
import sys
from pathlib import Path

import h5py
from legacy.bilm_files import OPTIONS, arrays_for
from pretraining.making import rule_text
from tasks.cases import make_task, prepare_documents

from polyseme.cli.app import main

SMALL = (
    *("--preset", "elmo-teaching", "--set", "model.encoder.contextualizer.proj_size=16"),
    *("--set", "model.vocabulary.min_count=1", "--set", "batches.words=300"),
)


def write_old_weights(folder: Path) -> None:
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps(OPTIONS), encoding="utf-8")
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, array in arrays_for(OPTIONS).items():
            file[name] = array


def commands(folder: Path) -> list[list[str]]:
    """The words after `polyseme`, in an order in which each finds what it needs."""
    folder.mkdir(parents=True)
    case = make_task(folder)
    documents = prepare_documents(folder / "documents", 60)
    write_old_weights(folder / "old")
    (folder / "text.txt").write_text(rule_text(), encoding="utf-8")
    corpus, model, task = folder / "corpus", folder / "model", folder / "names"
    quick = ("--set", "training.epochs=1")
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
        ("train", case.task, "--out", task, *quick),
        ("evaluate", task),
        ("predict", "--task", task, "word1 word10"),
        ("compare", case.task, "--out", folder / "compared", *quick),
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


if __name__ == "__main__":
    for line in commands(Path(sys.argv[1])):
        code = run(line)
        print("did", line[0], code, file=sys.stderr)
        if code:
            sys.exit(code)
