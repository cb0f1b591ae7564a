"""Every test that the page on reliability names exists, and no row is without one by accident."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/reliability.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def missing(page: str) -> list[str]:
    """Tests that are named and not there."""
    return [
        f"{path}::{name}" for path, name in NAMED.findall(page) if name not in functions_in(path)
    ]


def functions_in(path: str) -> set[str]:
    file = ROOT / path
    if not file.is_file():
        return set()
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def rows_without_a_test(page: str) -> list[str]:
    """Rows of tables that promise something and name no test."""
    rows = [line for line in page.splitlines() if line.startswith("| ") and "| what is" not in line]
    return [row for row in rows if not NAMED.search(row)]


def test_every_test_that_is_named_exists() -> None:
    assert len(NAMED.findall(PAGE)) > 50
    assert missing(PAGE) == []


def test_every_promise_names_a_test() -> None:
    assert rows_without_a_test(PAGE) == []


@pytest.mark.parametrize("old", ["test_bad_input.py", "test_one_flipped_byte_is_refused"])
def test_a_test_that_was_renamed_is_noticed(old: str) -> None:
    assert len(missing(PAGE.replace(old, old.replace("test_", "test_renamed_")))) == 1


def test_a_promise_that_has_lost_its_test_is_noticed() -> None:
    assert rows_without_a_test("| when | what is promised | proved by |\n| it rains | dry | |\n")
