"""The pages that say how to add something: their steps are carried out in a copy of the sources."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PAGES = ["add-an-objective", "add-a-contextualizer", "add-an-encoder-of-another-library"]


def carry_out(page: str, folder: Path) -> list[str]:
    """Write the page's files and changes into a copy of the sources, run its commands."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    printed = []
    for language, title, text in BLOCK.findall(page):
        path = folder / title
        match language:
            case "python" if title == "check":
                printed.append(run([sys.executable, "-c", text], folder))
            case "python":
                assert not path.exists(), title
                path.write_text(text, encoding="utf-8")
            case "diff":
                path.write_text(patched(path.read_text(encoding="utf-8"), text), encoding="utf-8")
            case "console":
                [(_, command)] = re.findall(r"^(\$) (.*)$", text, re.MULTILINE)
                words = shlex.split(command)
                assert words[0] == "python"
                printed.append(run([sys.executable, *words[1:]], folder))
    return printed


def patched(text: str, diff: str) -> str:
    """A text with the hunks of a diff applied; each must fit at one place."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] != "+")
        new = "".join(line[1:] for line in lines if line[0] != "-")
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def run(command: list[str], folder: Path) -> str:
    environment = {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1", "PATH": ""}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", PAGES)
def test_the_steps_of_the_page_can_be_carried_out(name: str, tmp_path: Path) -> None:
    page = (ROOT / f"docs/how-to/{name}.md").read_text(encoding="utf-8")
    printed = carry_out(page, tmp_path)
    tested = [int(number) for text in printed for number in re.findall(r"(\d+) passed", text)]
    assert len(printed) == 1
    assert all(number >= 10 for number in tested)


def test_a_diff_that_fits_nowhere_is_noticed() -> None:
    assert patched("a\nb\n", " a\n-b\n+c\n") == "a\nc\n"
    with pytest.raises(AssertionError):
        patched("a\nb\n", " b\n-a\n+c\n")
