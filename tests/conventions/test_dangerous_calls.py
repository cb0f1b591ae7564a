"""No line of the package can run what a file holds, or unpack it where the file wants."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme

PACKAGE = Path(polyseme.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {
    "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal",
    "shelve", "yaml", "tarfile", "imp", "code", "codeop", "runpy",
}  # fmt: skip
"""Imported nowhere."""
BUILTINS = {"eval", "exec", "compile", "__import__"}
METHODS = {"extractall", "unpack_archive", "unsafe_load", "full_load", "find_class"}
"""Called on nothing."""
CALLS = {
    "torch.load", "torch.save", "torch.jit.load", "torch.hub.load", "numpy.load", "np.load",
    "yaml.load", "os.system", "os.popen", "torch.package.PackageImporter", "torch.export.load",
}  # fmt: skip


def faults(text: str) -> list[str]:
    """What a file does that none of ours may."""
    return [found for node in ast.walk(ast.parse(text)) for found in _faults_of(node)]


def _faults_of(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (one.name for one in names if one.name.split(".")[0] in MODULES)
        case ast.ImportFrom(module=str(module), names=names):
            yield from (module for _ in names if module.split(".")[0] in MODULES)
            yield from (f"{module}.{one.name}" for one in names
                        if f"{module}.{one.name}" in CALLS or one.name in METHODS)  # fmt: skip
        case ast.Call(func=function, keywords=keywords):
            called = ast.unparse(function)
            is_safe = called == "torch.load" and _is_true(node, "weights_only")
            if (called in BUILTINS | CALLS and not is_safe) or called.rpartition(".")[2] in METHODS:
                yield called
            for keyword in keywords:
                is_false = isinstance(keyword.value, ast.Constant) and not keyword.value.value
                if keyword.arg in ("allow_pickle", "shell") and not is_false:
                    yield f"{called}({keyword.arg})"
        case ast.Name(id=name) if name in BUILTINS:
            yield name  # given another name, it would be called unseen


def _is_true(call: ast.Call, name: str) -> bool:
    values = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == name]
    return values == ["True"]


def test_no_file_runs_or_unpacks_what_it_reads() -> None:
    assert len(FILES) > 200
    found = {str(path): faults(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: each for path, each in found.items() if each} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import os, pickle as p",
        "from pickle import loads",
        "import yaml.loader",
        "def f():\n    import dill",
        "eval('1')",
        "run = eval",
        "exec(text)",
        "torch.load(path)",
        "torch.load(path, weights_only=flag)",
        "from torch import load",
        "np.load(path)",
        "numpy.load(path, allow_pickle=True)",
        "read(path, allow_pickle=flag)",
        "archive.extractall()",
        "zipfile.ZipFile(path).extractall(folder)",
        "shutil.unpack_archive(path)",
        "os.system('ls')",
        "subprocess.run(text, shell=True)",
        "yaml.load(text)",
        "import tarfile",
        "__import__(name)",
    ],
)
def test_a_file_that_did_would_be_noticed(text: str) -> None:
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "read(path, allow_pickle=False)",
        "torch.load(path, weights_only=True)",
        "json.loads(text)",
        "self.load(path)",
        "model.eval()",
    ],
)  # fmt: skip
def test_harmless_lines_are_let_pass(text: str) -> None:
    assert not faults(text)
