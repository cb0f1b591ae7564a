"""The names of the style guide, for the whole package."""

import ast
import re
import tomllib
from pathlib import Path

import polyseme

PACKAGE = Path(polyseme.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
FORBIDDEN = {"util", "utils", "common", "helpers", "misc", "manager", "handler", "base"}


def test_names_are_those_of_the_style_guide() -> None:
    assert not [path for path in FILES if path.stem in FORBIDDEN]


def test_contributing_lists_every_package_in_its_order() -> None:
    root = PACKAGE.parents[1]
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contract = contracts["tool"]["importlinter"]["contracts"][0]
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    layers = [layer.split(" | ") for layer in reversed(contract["layers"])]
    assert packages == [each for layer in layers for each in reversed(layer)]


def test_every_module_says_what_it_is() -> None:
    silent = [p.name for p in FILES if not ast.get_docstring(ast.parse(p.read_bytes()))]
    assert not silent
