"""Hostile names and words on a real terminal, through the command line."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from screens import controls_in, is_shown
from tasks.cases import make_task

from polyseme.commands import train

NAME = "a\x1b[2J\x07\x9b[red]:bomb:\u202e\nError: forged \udcff"
WORDS = "\u202eevil\u2066 :bomb: [red]"


def on_a_terminal(*words: str | Path, code: int = 0) -> str:
    """What `polyseme` sends to the terminal it runs on."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "polyseme", *map(str, words)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "300"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as child:
        os.close(its)
        sent = b"".join(_blocks(ours))
    os.close(ours)
    text = sent.decode("utf-8")  # strict: a byte that is no UTF-8 is a control of its own
    assert child.returncode == code, text
    return text


def _blocks(terminal: int) -> Iterator[bytes]:
    try:
        while block := os.read(terminal, 65536):
            yield block
    except OSError:  # how Linux says that the last one has hung up
        return


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / f"{NAME}.txt").write_text(f"One {WORDS} day.\n" * 9, encoding="utf-8")
    (folder / f"{NAME}.jpg").write_bytes(b"no text")
    return folder


def test_hostile_file_names_are_shown_while_a_corpus_is_made_and_inspected(
    texts: Path, tmp_path: Path
) -> None:
    out = tmp_path / NAME[:-1] / "corpus"
    segmenter = ("--language", "en", "--segmenter", "whitespace")
    sent = on_a_terminal("prepare", texts, *segmenter, "--out", out)
    assert not controls_in(sent)
    assert is_shown(f"Skipped {NAME}.jpg", sent)
    assert is_shown(f"Read statistics of {out}", sent)
    sent = on_a_terminal("inspect", out, "--verify")
    assert not controls_in(sent)
    for word in WORDS.split():
        assert is_shown(word, sent)
    # In an error, too; tests/cli/test_terminal.py has all kinds of arguments.
    sent = on_a_terminal("prepare", f"--{NAME}", code=2)
    assert not controls_in(sent)
    assert "forged" in sent
    assert not [line for line in sent.splitlines() if line.startswith("Error: forged")]


@pytest.mark.slow
def test_hostile_texts_and_labels_are_shown_by_predict_and_evaluate(tmp_path: Path) -> None:
    case, label = make_task(tmp_path), "\u202eX:bomb:[red]"
    for data in case.folder.glob("*.conll"):
        text = data.read_text(encoding="utf-8").replace("NAME", label)
        data.write_text(text, encoding="utf-8")
    out = case.folder / "[red]:bomb:"
    train.run(train.TrainConfig(task=case.task, out=out))
    sent = on_a_terminal("predict", "--task", out, "word1 word2 word10 word3", f"word1 {WORDS}")
    assert not controls_in(sent)
    assert is_shown(f"word10[{label}]", sent)
    assert is_shown("\u202eevil\u2066 :bomb", sent)
    sent = on_a_terminal("evaluate", out)
    assert not controls_in(sent)
    assert is_shown(label, sent)
    assert is_shown(str(out), sent)
