"""Every command in a process of its own, once: it starts, works, prints and ends.

All else about a command is looked at in the tests' own process, which is quicker.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import forked_process, polyseme
from legacy.published import GOLDEN, SETS
from storage.hub_server import local_hub
from tasks.cases import make_task, prepare_documents

from polyseme.cli import all_verbs

SHARDS = "--set corpus.shard_bytes=4096"
QUICK = "--set training.epochs=1"
NUMBERED = "--regex 'word[0-9]'"
SIDES = "--before 'document<text.txt@2' --after 'document>=text.txt@2'"
COMMANDS = {
    "prepare": (
        "{text} --language en --workers 2 --set corpus.shard_bytes=4096 --out {out}",
        "words",
    ),
    "inspect": ("{corpus}", "Most frequent words"),
    "plan": ("{corpus} --preset elmo-teaching --hours 0.1", "words per second"),
    "pretrain": ("{corpus} --preset elmo-teaching --steps 1 --out {out}", "polyseme evaluate"),
    "evaluate": ("{trained}", "15 examples"),
    "score": ("'word1 word2 .' --model {model}", "word2"),
    "generate": ("word1 --model {model} --samples 2 --max-words 5", "word1 word"),
    "compare-models": (
        "{corpus} --presets word2vec,elmo-teaching --minutes 0.01 --out {out}",
        "Models after equal time",
    ),
    "embed": (
        "{corpus} --model {model} --layers top --workers 1 --out {out}",
        "polyseme vectors info",
    ),
    "vectors info": ("{vectors} --verify", "files are intact"),
    "uses": ("word1 --in {corpus} --lines 2", "2 of "),
    "query": ("'\"word1\" []' --in {corpus} --lines 2", "2 of "),
    "collocates": ("word1 --in {corpus} --min-g2 0 --top 2", "2 of "),
    "subcorpora": ("part --in {corpus} --where 'document<text.txt@2'", "part"),
    "export": ("{corpus} --out {out}.vrt", "cwb-encode"),
    "ngrams": ("--in {corpus} --size 2 --min-frequency 1", "2-grams"),
    "keywords": ("--in {corpus} --where 'document<text.txt@2' --min-g2 0", "here"),
    "senses": (f"{NUMBERED} --in {{corpus}} --model {{model}} --groups 2", "in 2 groups"),
    "change": (
        f"{NUMBERED} --in {{corpus}} --model {{model}} {SIDES}",
        "chance",
    ),
    "edit": (
        f"{NUMBERED} --in {{corpus}} --model {{model}} --edits {{out}} --rename 1 --name first",
        "Edit 1 was added",
    ),
    "label": (
        f"{NUMBERED} --in {{corpus}} --model {{model}} --labels {{labels}}",
        "All labels are the same",
    ),
    "judge": (
        f"{NUMBERED} --in {{corpus}} --annotators ana,ben --number 5 --out {{out}}",
        "5 pairs of",
    ),
    "agreement": ("{judgments}", "Krippendorff's alpha"),
    "substitutes": ("'word1 *word2* .' --model {model}", "Instead of 'word2'"),
    "nearest": ("'word1 *word2* .' --in {corpus} --model {model}", "The nearest of"),
    "same": ("'word1 *word2* .' 'word3 *word2* .' --model {model}", "Similarity"),
    "index": (
        "{corpus} --model {model} --words word1,word2 --workers 1 --out {out}",
        "bytes per use",
    ),
    "explore": ("{corpus} --model {model} --no-browser --idle 0.001", "Notes are kept in"),
    "demo": ("--language zh --no-browser --idle 0.001 --cache {out}", "Texts and notes are in"),
    "train": (f"{{task}} --out {{out}} {QUICK}", "f1 on the development data"),
    "predict": ("'word1 word10' --task {trained}", "word1"),
    "compare": (f"{{task}} --with none,static --out {{out}} {QUICK}", "f1 on the dev data"),
    "choices": ("{documents} --examples 16 --out {out}", "train.jsonl: 16 examples"),
    "push": ("{model} someone/tiny", "someone/tiny now has"),
    "pull": ("someone/elmo --out {out}", "all hashes as in its manifest"),
    "models": ("", "en-mini"),
    "doctor": ("", "No problems found."),
    "convert import": ("{weights} --out {out} --language en", "bilm-tf / AllenNLP"),
    "convert export": ("{elmo} --out {out}", "model.hdf5"),
}
"""What follows the command's name, and what it prints."""


@dataclass(frozen=True)
class Made:
    """What the commands work on."""

    text: Path
    corpus: Path
    model: Path
    task: Path
    trained: Path
    vectors: Path
    elmo: Path
    labels: Path
    documents: Path
    judgments: Path
    weights: Path = GOLDEN / "allennlp" / "lm_weights.hdf5"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("every")
    case = make_task(folder)
    made = Made(
        text=folder / "made" / "text.txt",
        corpus=folder / "made" / "corpus",
        model=case.model,
        task=case.task,
        trained=folder / "names",
        vectors=folder / "vectors",
        elmo=folder / "elmo",
        labels=folder / "labels.csv",
        documents=prepare_documents(folder / "documents", 60),
        judgments=folder / "judgments.csv",
    )
    made.judgments.write_text(
        "identifier1\tidentifier2\tannotator\tjudgment\na\tb\tana\t4\na\tb\tben\t3\n",
        encoding="utf-8",
    )
    polyseme("uses", *shlex.split(NUMBERED), "--in", made.corpus, "--out", made.labels)
    header, first, *_ = made.labels.read_text(encoding="utf-8-sig").splitlines()
    made.labels.write_text(f"{header},label\n{first},a sense\n", encoding="utf-8")
    SETS["allennlp"].model().save(made.elmo, card="")
    polyseme("train", made.task, "--out", made.trained, *shlex.split(QUICK))
    top = ("--layers", "top", "--workers", "1")
    polyseme("embed", "--model", made.model, made.corpus, *top, "--out", made.vectors)
    with local_hub():
        polyseme("push", made.elmo, "someone/elmo")
        yield made


@pytest.mark.parametrize(
    "name",
    COMMANDS,
)
def test_a_command_works_in_a_process_of_its_own(name: str, made: Made, tmp_path: Path) -> None:
    words, printed = COMMANDS[name]
    result = forked_process(
        *name.split(), *shlex.split(words.format(**vars(made), out=tmp_path / "out"))
    )
    assert printed in " ".join(result.stdout.split())
    assert "Traceback" not in result.stderr
    assert "Warning" not in result.stderr


SERVERS = {"demo", "explore"}
"""What they tell is a page."""


@pytest.mark.parametrize(
    "name",
    [name for name in COMMANDS if name not in SERVERS],
)
def test_a_command_prints_json_lines_and_nothing_else_if_asked(
    name: str, made: Made, tmp_path: Path
) -> None:
    words = COMMANDS[name][0].replace("--workers 2", "--workers 1")
    given = shlex.split(words.format(**vars(made), out=tmp_path / "out"))
    lines = polyseme(*name.split(), *given, "--json").stdout.splitlines()
    assert lines
    for line in lines:
        assert isinstance(json.loads(line, parse_constant=_refuse), dict)


def _refuse(constant: str) -> None:
    """Python writes and reads NaN and Infinity; JSON has neither."""
    raise AssertionError(constant)


def test_no_command_is_left_out() -> None:
    verbs = [verb for verbs in all_verbs().values() for verb in verbs]
    parts = {f"{verb.name} {part.name}" for verb in verbs for part in verb.parts}
    elsewhere = {"serve"}  # ends at a signal alone: tests/reliability/test_serving.py
    assert set(COMMANDS) | elsewhere == parts | {verb.name for verb in verbs if not verb.parts}
