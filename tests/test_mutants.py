"""The list of mutants cannot rot: every line it changes and every test it names is there."""

import ast
from pathlib import Path

import pytest
from mutants import PACKAGE, Mutant, mutants

TESTS = Path(__file__).parent
ALL = list(mutants())
ROOMS = {"encoders", "objectives", "training", "text", "engines", "transfer", "tasks", "vectors"}


def has_test(name: str) -> bool:
    file, _, function = name.partition("::")
    if not (TESTS / file).is_file():
        return False
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return not function or function in found


def test_there_are_at_least_sixty_and_several_for_each_room() -> None:
    assert len(ALL) >= 60
    assert len(set(ALL)) == len(ALL)
    for room in ROOMS | {"legacy"}:
        assert sum(mutant.room == room for mutant in ALL) >= 5, room


@pytest.mark.parametrize("mutant", ALL, ids=lambda m: f"{m.file}: {m.why}")
def test_a_mutant_changes_one_place_and_names_tests_that_are_there(mutant: Mutant) -> None:
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    ast.parse(text.replace(mutant.old, mutant.new))
    assert mutant.new != mutant.old
    assert mutant.tests
    assert [name for name in mutant.tests if not has_test(name)] == []
    assert mutant.why


def test_a_test_that_is_not_there_is_seen() -> None:
    assert has_test("test_mutants.py::test_a_test_that_is_not_there_is_seen")
    assert not has_test("test_mutants.py::test_of_something_else")
    assert not has_test("test_of_something_else.py")
