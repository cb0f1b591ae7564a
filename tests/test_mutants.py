"""Mutants are what they say: one change of one function, found in any source."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from mutants import PACKAGE, Mutant, draw, find_tests, judge, mutants_of, sum_up

SOURCE = '''
LIMIT = 3

def clip(value: int, low: int = 0) -> int:
    """At least `low`."""
    if value < low and not is_free(value):
        raise ValueError(f"{value + 1} is too low")
    log(value)
    return min(value + 2, LIMIT, key=abs)
'''


def test_one_function_has_every_kind_of_change_and_messages_have_none() -> None:
    found = [(mutant.kind, *mutant.diff()) for mutant in mutants_of("a.py", SOURCE)]
    assert found == [
        ("number", "0", "1"),
        (
            "condition",
            "if value < low and (not is_free(value)):",
            "if not (value < low and (not is_free(value))):",
        ),
        ("and, or", "value < low and (not is_free(value))", "value < low or not is_free(value)"),
        ("comparison", "value < low", "value <= low"),
        ("not", "not is_free(value)", "is_free(value)"),
        ("call left out", "log(value)", "pass"),
        ("result", "return min(value + 2, LIMIT, key=abs)", "return None"),
        ("argument left out", "min(value + 2, LIMIT, key=abs)", "min(value + 2, LIMIT)"),
        ("operator", "value + 2", "value - 2"),
        ("number", "2", "3"),
    ]


def test_each_mutant_is_a_program_that_differs_from_the_source_and_from_every_other() -> None:
    texts = [mutant.text() for mutant in mutants_of("a.py", SOURCE)]
    assert ast.unparse(ast.parse(SOURCE)) not in texts
    assert len(set(texts)) == len(texts)
    for text in texts:
        ast.parse(text)


def test_a_seed_draws_the_same_and_another_seed_others() -> None:
    drawn = [[mutant.text() for mutant in draw(6, "text/", seed)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    mutants = draw(6, "text/", seed=1)
    assert len({mutant[:2] for mutant in mutants}) == 6
    assert all(mutant.file.startswith("text/") for mutant in mutants)


def test_a_module_is_tested_by_the_file_of_its_name_and_by_those_that_import_it() -> None:
    assert {"test_errors.py", "test_config.py"} <= set(find_tests("errors.py"))
    assert find_tests("no_such_module.py") == ()


def test_the_sources_are_left_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from queue import SimpleQueue

    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    seen: list[str] = []

    def tests(package: Path, _: tuple[str, ...]) -> int:
        seen.append((package / "a.py").read_text(encoding="utf-8"))
        return len(seen) - 1  # passes without the fault, fails with it

    monkeypatch.setattr("mutants.run_tests", tests)
    mutant: Mutant = next(mutants_of("a.py", SOURCE))
    copies: SimpleQueue[Path] = SimpleQueue()
    copies.put(tmp_path)
    assert judge(mutant, copies) == "killed"
    assert seen == [ast.unparse(ast.parse(SOURCE)), mutant.text()]
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == SOURCE
    assert not list(PACKAGE.glob("a.py"))


@pytest.mark.parametrize(("survivors", "code"), [(0, 0), (20, 0), (30, 1)])
def test_a_run_fails_if_too_many_survive(survivors: int, code: int) -> None:
    assert sum_up(Counter(killed=100 - survivors, SURVIVED=survivors)) == code
