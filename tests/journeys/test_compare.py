"""A task fed in several ways, through the command line."""

import json
from pathlib import Path

import pytest
from command_line import polyseme
from tasks.cases import TaskCase, make_task


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    return make_task(tmp_path_factory.mktemp("compare"))


def test_ways_are_held_against_the_first(case: TaskCase, tmp_path: Path) -> None:
    ways = "static,frozen,finetuned"
    quick = ("--set", "training.epochs=2")
    command = ("compare", case.task, "--with", ways, "--out", tmp_path, "--on", "test", *quick)
    shown = polyseme(*command)
    assert "f1 on the test data" in shown.stdout
    told = json.loads((tmp_path / "compare-test.json").read_text(encoding="utf-8"))
    first, frozen, tuned = told["ways"]
    assert [way["way"] for way in told["ways"]] == ways.split(",")
    assert first["against_first"] is None
    assert frozen["against_first"]["first"] == pytest.approx(first["values"][0])
    assert frozen["against_first"]["second"] == pytest.approx(frozen["values"][0])
    assert 0 < frozen["against_first"]["p_value"] <= 1
    numbers = [way["seeds"][0]["trained_parameters"] for way in (first, frozen, tuned)]
    assert numbers == sorted(numbers)


def test_a_way_is_named_once(case: TaskCase, tmp_path: Path) -> None:
    command = ("compare", case.task, "--with", "static,static", "--out", tmp_path)
    assert "name each way once" in polyseme(*command, code=2).stderr
