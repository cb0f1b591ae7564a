"""The steps of "Add a task family", carried out on a copy of the sources."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add-a-task-family.md").read_text(encoding="utf-8")
FENCE = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NOT_COPIED = shutil.ignore_patterns("__pycache__", "golden", "models", "reliability")

ONE_AFTER_THE_OTHER = """
import json, sys
from command_line import polyseme
print(json.dumps([polyseme(*words).stdout for words in json.loads(sys.argv[1])]))
"""


@dataclass(frozen=True)
class House:
    """A copy of the sources with the family in it."""

    folder: Path

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """What Python printed, given these words; its errors are the test's."""
        paths = os.pathsep.join(str(self.folder / part) for part in ("src", "tests", "."))
        result = subprocess.run(
            [sys.executable, *words],
            cwd=cwd or self.folder,
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
        return result.stdout


def apply(diff: str, text: str) -> str:
    """The text with one part of it changed, which occurs once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(old) == 1, f"not there, or more than once:\n{old}"
    return text.replace(old, new)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    folder = tmp_path_factory.mktemp("house")
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=NOT_COPIED)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for kind, name, content in FENCE.findall(PAGE):
        path = folder / name
        if kind == "diff":
            path.write_text(apply(content, path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            assert not path.exists()
            path.write_text(content, encoding="utf-8")
    return House(folder)


@pytest.fixture(scope="module")
def work(house: House) -> Path:
    """The data of the page's task: a star, and one more for each `good`."""
    folder = house.folder / "work"
    folder.mkdir()
    shutil.copy(house.folder / "stars.toml", folder)
    for part, (first, last) in {"train": (0, 80), "dev": (80, 100), "test": (100, 120)}.items():
        rows = ["review\tstars"]
        for number in range(first, last):
            stars = number * 7 % 5
            words = ["a", *["good"] * stars, *["dull"] * (number % 3), "film"]
            rows.append(f"{' '.join(words)}\t{1 + stars}")
        (folder / f"{part}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_the_page_touches_its_own_files_and_one_union() -> None:
    touched = {name for _, name, _ in FENCE.findall(PAGE)}
    sources = {name for name in touched if name.startswith("src/")}
    families = "src/polyseme/tasks/families"
    assert sources == {f"{families}/regression.py", f"{families}/__init__.py"}
    table = PAGE[PAGE.index("| file |") :].split("\n\n")[0]
    listed = set(re.findall(r"^\| `([^`]+)` ", table, re.MULTILINE))
    assert touched - {"stars.toml"} <= listed
    for name in listed - {f"{families}/regression.py", "tests/tasks/families/test_regression.py"}:
        assert (ROOT / name).is_file(), name


def test_the_new_family_keeps_the_laws_and_passes_its_own_tests(house: House) -> None:
    command = re.findall(r"^pytest (.*)$", PAGE, re.MULTILINE)[0]
    shown = house.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *shlex.split(command))
    assert int(re.findall(r"(\d+) passed", shown)[0]) >= 7


def test_the_new_family_is_trained_measured_compared_and_used(house: House, work: Path) -> None:
    commands = [line.split(maxsplit=1)[1] for line in re.findall(r"^polyseme .*$", PAGE, re.M)]
    assert [command.split()[0] for command in commands] == [
        *("train", "evaluate", "predict", "compare"),
    ]
    # One process for all: each would load torch again.
    words = json.dumps([shlex.split(command) for command in commands])
    trained, evaluated, predicted, compared = json.loads(
        house.run("-c", ONE_AFTER_THE_OTHER, words, cwd=work)
    )
    assert "pearson on the development data" in trained
    told = json.loads((work / "tasks/stars/metrics.json").read_text(encoding="utf-8"))
    assert told["mean"] > 0.8
    assert "pearson of" in evaluated
    assert "20 examples" in evaluated
    assert re.search(r"^\d\.\d\d  a good good film", predicted, re.MULTILINE)
    assert "static" in compared
    told = json.loads((work / "compared/stars/compare-dev.json").read_text(encoding="utf-8"))
    assert told["measure"] == "pearson"
    assert 0 < told["variants"][1]["against_first"]["p_value"] <= 1


def test_a_step_that_no_longer_fits_is_noticed() -> None:
    with pytest.raises(AssertionError, match="not there"):
        apply(" class Other:\n+    new: int\n", "class One:\n")
