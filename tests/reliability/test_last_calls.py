"""Whatever change of the disk was a command's last: the next run finishes, and tidies all up."""

import shutil
from pathlib import Path

import pytest
from executors.jobs import hashes

from reliability.dying import DEATH
from reliability.writing_commands import COMMANDS, Inputs, make_inputs

# Those that write; how many deaths each dies in the fast tier.
DEATHS = {"prepare": 6, "embed": 3, "pretrain": 3, "train": 2, "predict": 4, "inspect": 1}
DEATHS |= {"convert": 3}
TURN = 2


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return make_inputs(tmp_path_factory.mktemp("dying") / "inputs")


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def begin(name: str, inputs: Inputs, out: Path) -> Path:
    """The folder before the command: empty, or the corpus that is looked at."""
    if name == "inspect":
        return Path(shutil.copytree(inputs.case.corpus.folder, out))
    out.mkdir()
    return out


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DEATHS)
def test_a_run_after_a_death_leaves_just_what_a_quiet_run_leaves(
    inputs: Inputs, tmp_path: Path, name: str, every: bool
) -> None:
    run, quiet = COMMANDS[name], begin(name, inputs, tmp_path / "quiet")
    with DEATH.watching(quiet):
        run(inputs, quiet, TURN)
    expected, changes = names(quiet), DEATH.seen
    assert changes > 3
    assert ".work" not in expected
    some = {2 + n * changes // DEATHS[name] for n in range(DEATHS[name])}
    for at in range(1, changes + 1) if every else sorted(some):
        out = begin(name, inputs, tmp_path / f"out-{at}")
        with DEATH.watching(out, at):
            run(inputs, out, TURN)
        if name == "convert" and set(names(out)) - {".work"}:
            continue  # it refuses a folder with anything in it, half of its own files too
        run(inputs, out, TURN)
        assert names(out) == expected, f"death at change {at} of {changes}"
        shutil.rmtree(out)


def test_a_death_leaves_something_that_the_next_run_has_to_remove(
    inputs: Inputs, tmp_path: Path
) -> None:
    """The control: were nothing left behind, the test above would prove nothing."""
    left = set()
    for at in range(1, 12):
        out = begin("prepare", inputs, tmp_path / f"out-{at}")
        with DEATH.watching(out, at):
            COMMANDS["prepare"](inputs, out, TURN)
        left |= {".work" in names(out), bool(hashes(out))}
    assert left == {True, False}
