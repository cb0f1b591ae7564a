"""The list of mutants cannot rot: every line it changes and every test it names is there."""

import ast
import shutil
from pathlib import Path

import pytest
from mutants import PACKAGE, Mutant, Verdict, mutants, sum_up

TESTS = Path(__file__).parent
ALL = list(mutants())
ROOMS = {"encoders", "objectives", "training", "text", "executors", "tasks", "embedding"}


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


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["killed"], 0),
        (["killed", "explained"], 0),
        (["killed", "SURVIVED"], 1),
        (["killed", "ERROR 2"], 1),
    ],
)
def test_a_survivor_without_a_reason_fails_the_run(outcomes: list[str], code: int) -> None:
    assert sum_up([Verdict(ALL[0], outcome, 1.0) for outcome in outcomes]) == code


def test_a_mutant_is_put_into_the_copy_and_into_nothing_else(tmp_path: Path) -> None:
    mutant = ALL[0]
    (tmp_path / mutant.file).parent.mkdir(parents=True)
    shutil.copy(PACKAGE / mutant.file, tmp_path / mutant.file)
    before = mutant.apply(tmp_path)
    assert before == (PACKAGE / mutant.file).read_text(encoding="utf-8")
    after = (tmp_path / mutant.file).read_text(encoding="utf-8")
    assert after == before.replace(mutant.old, mutant.new) != before
    with pytest.raises(ValueError, match="has 0 times"):
        mutant._replace(old="no such line").apply(tmp_path)


def test_the_list_reads_like_a_diff(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "a/b.py: for a reason\n- old\\n  line\n+ new\n= nobody can tell\n? x.py y.py::test_z\n\n"
    (tmp_path / "list").write_text(text, encoding="utf-8")
    monkeypatch.setattr("mutants.LIST", tmp_path / "list")
    tests = ("x.py", "y.py::test_z")
    expected = ("a/b.py", "for a reason", "old\n  line", "new", tests, "nobody can tell")
    assert [tuple(mutant) for mutant in mutants()] == [expected]
