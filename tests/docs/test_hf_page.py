"""The page on encoders of Hugging Face, run from top to bottom with a small random encoder."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import polyseme
from corpora import prepared
from embedding.hf_making import make_folder
from tasks.cases import make_task

PAGE = Path(__file__).parents[2] / "docs/how-to/use-a-hugging-face-encoder.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FETCHING = ("pip install", "hf download")  # what the test has done instead


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the page takes for granted: a model, a corpus, a text, and labelled data."""
    monkeypatch.chdir(tmp_path)
    make_folder("bert", Path("models/bert"))
    make_task(tmp_path)
    Path("letters.txt").write_text("She plays the piano. It rains.\n", encoding="utf-8")
    prepared(Path("letters.txt"), Path("corpus/letters"), held_out=0.0)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_page_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    kinds, shown = [], ""
    for kind, code in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        kinds.append(kind)
        if kind == "python":
            exec(compile(code, PAGE.name, "exec"), names)
        elif kind == "toml":
            Path("names.toml").write_text(f"{code}\n[training]\nepochs = 1\n", encoding="utf-8")
        else:
            for command in code.splitlines():
                if not command.startswith(FETCHING):
                    shown += polyseme(*shlex.split(command)[1:]).stdout
    assert kinds.count("sh") == 4
    printed = capsys.readouterr().out
    assert printed.startswith("('She', 'plays', 'the', 'piano', '.') (3, 5, 24)\n")
    assert "(5, 24) Truncation(chunks=1, characters=0, unread_words=0)" in printed
    assert "f1 on the dev data" in shown


def test_the_page_names_every_pooling_and_the_extra() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "polyseme[hf]" in page
    assert '"first"' in page
