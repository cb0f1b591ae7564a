"""What an import must not bring with it.

The names of the style guide, for the whole package.
"""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import networkx
import pytest

import polyseme

PACKAGES = ["polyseme", "polyseme.text.prepare", "polyseme.text.corpus", "polyseme.executors"]


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_without_models_does_not_import_torch(package: str) -> None:
    assert importlib.util.find_spec("torch"), "without torch installed this shows nothing"
    assert "torch" not in modules_after(f"import {package}")


def test_importing_a_segmenter_does_not_load_its_library() -> None:
    loaded = modules_after("import polyseme.text.segmenters.spacy_rules")
    loaded |= modules_after("import polyseme.text.segmenters.jieba_words")
    assert not loaded & {"spacy", "jieba"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even by imports within functions."""
    graph = grimp.build_graph("polyseme", cache_dir=None)
    modules = graph.modules - {"polyseme"}  # which imports what it offers when it is asked for
    edges = [(m, other) for m in modules for other in graph.find_modules_directly_imported_by(m)]
    found = networkx.strongly_connected_components(networkx.DiGraph(edges))
    assert [circle for circle in found if len(circle) > 1] == []


def test_importing_the_package_imports_nothing_else() -> None:
    ours = {name for name in modules_after("import polyseme") if name.startswith("polyseme")}
    assert ours == {"polyseme"}


def test_kernels_are_built_by_the_standard_library_alone() -> None:
    """Where a wheel is built from source, the dependencies of the package are not there."""
    code = "import sys; sys.path.append(sys.argv[1]); import polyseme.encoders.kernels.build"
    source = Path(polyseme.__file__).parents[1]
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(source)], check=True)


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
