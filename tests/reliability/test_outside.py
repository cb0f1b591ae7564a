"""Whatever stands in an output folder, no command changes a file outside it."""

import random
import shutil
from pathlib import Path

import pytest

from polyseme.errors import PolysemeError
from reliability.victims import Planter, harm, make_victims, snapshot
from reliability.writing_commands import (
    COMMANDS,
    WRITES,
    Inputs,
    finished_output,
    make_inputs,
    unfinish,
)

# Cases for each command, 60 in all; in the slow tier 600.
QUICK = {"prepare": 22, "embed": 10, "pretrain": 5, "train": 4, "predict": 9, "inspect": 2}
QUICK |= {"compare": 2, "vectors": 2, "evaluate": 2, "convert": 2}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return make_inputs(tmp_path_factory.mktemp("outside") / "inputs")


def attack(name: str, inputs: Inputs, folder: Path, seed: int) -> tuple[list[str], list[str]]:
    """One case: what was planted, and the harm it did."""
    choose = random.Random(f"{name} {seed}")
    victims, out = make_victims(folder / "victims"), folder / "out"
    finished = finished_output(name, inputs)
    if finished is not None and choose.random() < 0.8:
        shutil.copytree(finished, out)
    out.mkdir(exist_ok=True)
    if choose.random() < 0.6:
        unfinish(name, out)
    planter = Planter(out, victims, choose, *WRITES[name])
    planter.plant(choose.randint(1, 3))
    before = [snapshot(victims), snapshot(inputs.folder)]
    try:
        COMMANDS[name](inputs, out, choose.randrange(6))
    except PolysemeError:
        pass  # a refusal is a good answer, any other exception is not
    except Exception as error:
        error.add_note(f"seed {seed}: {planter.planted}")
        raise
    after = [snapshot(victims), snapshot(inputs.folder)]
    return planter.planted, harm(before[0], after[0], planter.open_to) + harm(before[1], after[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_does_its_work_where_nothing_was_planted(
    inputs: Inputs, tmp_path: Path, name: str
) -> None:
    """Or all attacks on it would be refused for another reason, and prove nothing."""
    out, finished = tmp_path / "out", finished_output(name, inputs)
    if finished is not None:
        shutil.copytree(finished, out)
    out.mkdir(exist_ok=True)
    COMMANDS[name](inputs, out, 1)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_changes_anything_outside_its_output_folder(
    inputs: Inputs, tmp_path: Path, name: str, times: int
) -> None:
    for seed in range(QUICK[name] * times):
        planted, found = attack(name, inputs, tmp_path / str(seed), seed)
        assert found == [], f"seed {seed}: {planted}"
        shutil.rmtree(tmp_path / str(seed))
