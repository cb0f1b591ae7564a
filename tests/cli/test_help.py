"""The pages of help: nothing cut, nothing too wide, an example on each, and quick."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.cells import cell_len

from polyseme.cli import PANELS, all_verbs
from polyseme.cli import help as pages
from polyseme.cli.app import main

ROOT = Path(__file__).parents[2]
VERBS = [verb for verbs in all_verbs().values() for verb in verbs]
COMMANDS = [(), *((verb.name,) for verb in VERBS)] + [
    (verb.name, part.name) for verb in VERBS for part in verb.parts
]
BOX = str.maketrans("", "", "╭─╮│╰╯")


def print_page(command: tuple[str, ...], columns: int, patch: pytest.MonkeyPatch) -> None:
    """Print the help of a command as on a terminal so wide."""
    patch.setenv("COLUMNS", str(columns))
    patch.setattr(pages, "_WIDEST", columns)
    patch.setattr(sys, "argv", ["polyseme", *command, "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code


def words(printed: str) -> Counter[str]:
    return Counter(printed.translate(BOX).split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_at_80_columns_no_word_is_cut_and_no_line_is_too_wide(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_page(command, 80, monkeypatch)
    narrow = capsys.readouterr().out
    assert max(map(cell_len, narrow.splitlines())) <= 80
    print_page(command, 1_000, monkeypatch)  # wide enough for any line: the words as they are
    assert words(narrow) == words(capsys.readouterr().out)


def test_a_word_that_is_cut_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_page(("prepare",), 44, monkeypatch)  # too narrow for some
    narrow = capsys.readouterr().out
    print_page(("prepare",), 1_000, monkeypatch)
    assert words(narrow) != words(capsys.readouterr().out)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_there_is_an_example_of_the_command_itself(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_page(command, 80, monkeypatch)
    _, _, examples = capsys.readouterr().out.partition("Examples:\n")
    assert " ".join(("\n  polyseme", *command)) in "\n" + examples


def test_commands_are_listed_in_working_order_under_headings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_page((), 80, monkeypatch)
    headings, listed = [], []
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("╭─ "):
            headings.append(line.strip("╭─╮ "))
        elif line.startswith("│ ") and line[2] not in " -":
            listed.append(line.split()[1])
    assert headings == [*PANELS, "Options"]
    texts = "prepare inspect subcorpora export"
    models = f"{texts} plan pretrain evaluate score generate compare-models embed vectors"
    words = "uses query collocates keywords ngrams"
    judging = "senses edit label judge agreement"
    meanings = f"{words} {judging} change substitutes nearest same index demo explore"
    others = "train predict compare choices serve push pull models doctor convert"
    assert listed == f"{models} {meanings} {others}".split()


def test_every_file_of_a_command_is_listed() -> None:
    files = (ROOT / "src/polyseme/commands").rglob("*.py")
    names = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in files}
    assert names - {"polyseme.commands.__init__"} == {verb.module for verb in VERBS}


_LINES = ("polyseme ", "polyseme pretrain --", "polyseme convert import --l")
# All in one process, one after the other: the first that imports too much is named.
_WATCHED = """
import json, os, sys
from polyseme.cli.app import main
for words, environment in json.loads(sys.argv[1]):
    sys.argv = ["polyseme", *words]
    os.environ.update(environment)
    try: main()
    except SystemExit as ended: assert not ended.code, words
    for name in environment: del os.environ[name]
    heavy = {"torch", "spacy", "ray", "jieba", "matplotlib"} & set(sys.modules)
    assert not heavy, (words, environment, heavy)
"""


def test_help_version_and_completion_import_nothing_heavy() -> None:
    given: list[tuple[tuple[str, ...], dict[str, str]]] = [(("--version",), {})]
    given += [((*command, "--help"), {}) for command in COMMANDS]
    for line in _LINES:
        told = {"_POLYSEME_COMPLETE": "complete_bash", "COMP_WORDS": line}
        given.append(((), told | {"COMP_CWORD": str(len(line.split(" ")) - 1)}))
    watched = [sys.executable, "-c", _WATCHED, json.dumps(given)]
    done = subprocess.run(watched, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "--licence", "the last completion was asked for"
