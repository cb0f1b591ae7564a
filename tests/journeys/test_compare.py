"""Variants of a task, through the command line."""

import json
from pathlib import Path

import pytest
from command_line import polyseme
from tasks.cases import TaskCase, make_task


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> TaskCase:
    return make_task(tmp_path_factory.mktemp("compare"))


def test_variants_are_compared_with_the_first(case: TaskCase, tmp_path: Path) -> None:
    variants = "static,frozen,finetuned"
    quick = ("--set", "training.epochs=2")
    command = ("compare", case.task, "--with", variants, "--out", tmp_path, "--on", "test", *quick)
    shown = polyseme(*command)
    assert "f1 on the test data" in shown.stdout
    told = json.loads((tmp_path / "compare-test.json").read_text(encoding="utf-8"))
    first, frozen, tuned = told["variants"]
    assert [each["variant"] for each in told["variants"]] == variants.split(",")
    assert first["against_first"] is None
    assert frozen["against_first"]["first"] == pytest.approx(first["values"][0])
    assert frozen["against_first"]["second"] == pytest.approx(frozen["values"][0])
    assert 0 < frozen["against_first"]["p_value"] <= 1
    assert frozen["over_seeds"] is None  # there is one
    numbers = [each["seeds"][0]["trained_parameters"] for each in (first, frozen, tuned)]
    assert numbers == sorted(numbers)


def test_with_several_seeds_they_are_compared_too(case: TaskCase, tmp_path: Path) -> None:
    quick = ("--set", "training.epochs=1", "--seeds", "1,2")
    command = ("compare", case.task, "--with", "static,frozen", "--out", tmp_path, *quick)
    assert "p, seeds" in polyseme(*command).stdout
    told = json.loads((tmp_path / "compare-dev.json").read_text(encoding="utf-8"))
    first, frozen = told["variants"]
    assert first["over_seeds"] is None
    gained = sum(frozen["values"]) / 2 - sum(first["values"]) / 2
    assert frozen["over_seeds"]["difference"] == pytest.approx(gained)
