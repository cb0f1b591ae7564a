"""Installed models by name, through the command line; and what `doctor` finds."""

import json
import shutil
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from command_line import polyseme

from polyseme.commands import doctor
from polyseme.embedding import loading
from polyseme.encoders.kernels import build, loader
from polyseme.storage import installed

ROOT = Path(__file__).parents[2]


def flat(text: str) -> str:
    """What a table prints, on one line."""
    return " ".join(text.replace("│", " ").split())


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "__file__", str(tmp_path / "a" / "b" / "c" / "installed.py"))


@pytest.fixture
def right_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vectors are computed: test_every_command.py and tests/embedding/test_golden.py do."""
    monkeypatch.setattr(loading, "largest_difference", lambda _: 0.0)


def test_models_are_listed_with_what_their_cards_say() -> None:
    printed = polyseme("models").stdout
    row = next(line for line in printed.splitlines() if "en-mini" in line)
    assert "26.9 MB" in row
    assert "76.9 / 76.5" in row  # as in models/en-mini/README.md


@pytest.mark.usefixtures("nothing_installed")
def test_what_is_not_installed_is_listed_with_its_command() -> None:
    printed = polyseme("models").stdout
    for name in (*installed.MODELS, *installed.TASKS, *installed.DEMOS):
        assert f"packages/{name}" in printed
    assert "not on PyPI yet" in printed


def test_a_damaged_model_is_listed_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "models" / "en-mini", tmp_path / "models" / "en-mini")
    shutil.copytree(ROOT / "packages" / "en-mini", tmp_path / "packages" / "en-mini")
    (tmp_path / "models" / "en-mini" / "manifest.json").write_text("[]", encoding="utf-8")
    monkeypatch.setattr(installed, "__file__", str(tmp_path / "src" / "polyseme" / "s" / "i.py"))
    assert "damaged" in polyseme("models").stdout
    assert "Wrong: model en-mini." in polyseme("doctor", code=1).stdout


def test_a_name_works_where_a_folder_does(tmp_path: Path) -> None:
    sentence = "She plays the piano."
    named = polyseme("score", "--model", "en-mini", sentence, "--json", cwd=tmp_path).stdout
    assert (
        named
        == polyseme("score", "--model", ROOT / "models" / "en-mini", sentence, "--json").stdout
    )


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_model_is_told_with_the_command_that_brings_it(tmp_path: Path) -> None:
    result = polyseme("score", "--model", "en-mini", "A word.", cwd=tmp_path, code=65)
    assert "packages/en-mini" in result.stderr
    assert "not on PyPI yet" in flat(result.stderr)


@pytest.mark.usefixtures("right_vectors")
def test_doctor_names_a_missing_extra_and_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "jieba":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor, "version", version)
    printed = flat(polyseme("doctor").stdout)
    assert "[zh] missing without jieba" in printed
    assert "[zh]: pip install" in printed
    assert "No problems found." in printed


def test_doctor_finds_wrong_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "largest_difference", lambda _: 0.5)
    printed = flat(polyseme("doctor", code=1).stdout)
    every = [f"model {name}" for name in installed.MODELS]
    assert f"Wrong: {', '.join(every)}." in printed
    rows = [json.loads(row) for row in polyseme("doctor", "--json", code=1).stdout.splitlines()]
    wrong = [row["what"] for row in rows if row["state"] == "wrong"]
    assert wrong == every


@pytest.mark.usefixtures("right_vectors")
def test_doctor_tells_of_a_torch_for_cuda_where_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    for build_of, is_told in (("12.8", True), (None, False)):
        monkeypatch.setattr("torch.version.cuda", build_of)
        printed = flat(polyseme("doctor").stdout)
        assert ("--index-url https://download.pytorch.org/whl/cpu" in printed) == is_told
        assert ("gigabytes larger" in printed) == is_told
        assert "No problems found." in printed


@pytest.mark.usefixtures("right_vectors")
def test_doctor_says_that_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_FOLDER", "never-built")
    loader.load.cache_clear()
    try:
        printed = flat(polyseme("doctor").stdout)
    finally:
        loader.load.cache_clear()
    assert "kernel missing none; could use" in printed
    assert build.COMMAND in printed


def test_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"{need} ; extra == '{extra}'" for need in needs]
    found = doctor.read_extras(lines)
    assert found.keys() == {"", *project["optional-dependencies"]}
    assert "pyarrow" in found[""]
    assert {"torch", "safetensors", "scikit-learn"} <= set(found["senses"])
    assert {"torch", "scipy", "starlette"} <= set(found["explorer"])  # an extra of an extra
    assert found["cluster"] == ["ray", "obstore"]
