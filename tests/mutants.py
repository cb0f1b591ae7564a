"""Faults put into the sources on purpose: how many of them does a test notice?

    python tests/mutants.py [--only FOLDER] [--count N] [--seed N] [--jobs N]     or: make mutants

A fault is one change of the syntax tree: another comparison, a negated condition, `or` for `and`,
a sign, a number that is one larger, a call or an argument that is left out. So many are drawn from
all places where one fits, others each week. Each is made in a copy of the sources, and the tests of
its module run against the copy. What survives is printed as a diff: it needs a test, unless the
program does the same with it.
"""

import argparse
import ast
import concurrent.futures
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "polyseme"
SECONDS = 300  # a mutant that makes tests hang is killed by the clock
FEWEST_KILLED = 0.75
"""Below this share the run fails. Some mutants cannot be noticed, as the program does the same."""
PYTEST = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout=120", "-m", "not slow")

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip


class Mutant(NamedTuple):
    """A fault: in which function, what kind of change, and where in the syntax tree."""

    file: str
    function: str
    kind: str
    node: ast.AST
    new: ast.AST
    tree: ast.Module
    holder: ast.AST
    field: str
    place: int | None

    def text(self) -> str:
        """The whole file with the fault, without its comments."""
        held = getattr(self.holder, self.field)
        index = self.place
        put = self.new if index is None else [*held[:index], self.new, *held[index + 1 :]]
        setattr(self.holder, self.field, put)
        text = ast.unparse(ast.fix_missing_locations(self.tree))
        setattr(self.holder, self.field, held)
        return text

    def diff(self) -> tuple[str, str]:
        """The first line of what is changed, before and after."""
        nodes = (self.node, self.new)
        before, after = (ast.unparse(node).partition("\n")[0] for node in nodes)
        return before, after


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every way to change one node, with the kind of change."""
    new = copy.copy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            new.ops = [_COMPARISONS[type(operator)]()]
            yield "comparison", new
        case ast.BoolOp():
            new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
            yield "and, or", new
        case ast.UnaryOp(op=ast.Not()):
            yield "not", new.operand
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            new.op = _OPERATORS[type(operator)]()
            yield "operator", new
        case ast.Constant(value=bool() as value):
            new.value = not value
            yield "truth", new
        case ast.Constant(value=int() | float() as number):
            new.value = number + 1
            yield "number", new
        case ast.If() | ast.IfExp() | ast.While():
            new.test = ast.UnaryOp(ast.Not(), new.test)
            yield "condition", new
        case ast.Expr(value=ast.Call()):
            yield "call left out", ast.Pass()
        case ast.Call(keywords=[_, *others]):
            new.keywords = others
            yield "argument left out", new
        case ast.Return(value=ast.expr()) if not isinstance(new.value, ast.Constant):
            new.value = ast.Constant(None)
            yield "result", new


def places(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST, str, int | None]]:
    """Where a fault fits: in which function, and which field of which node holds the place.

    Messages of errors, annotations, decorators and what a module or a class says outside functions
    are left alone: tests do not quote them.
    """
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params", "type_comment"):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.JoinedStr):
                continue
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from places(child, f"{function}.{child.name}".lstrip("."))
                continue
            if function and not isinstance(tree, ast.ClassDef):
                yield function, tree, field, index if isinstance(value, list) else None
            yield from places(child, function)


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Every mutant of a module; `text` is its source."""
    tree = ast.parse(text)
    for function, holder, field, index in places(tree):
        held = getattr(holder, field)
        node = held if index is None else held[index]
        for kind, new in changes(node):
            yield Mutant(file, function, kind, node, new, tree, holder, field, index)


def draw(count: int, only: str, seed: int) -> list[Mutant]:
    """So many mutants, no more than one of a function; larger modules have more."""
    functions: dict[tuple[str, str], list[Mutant]] = {}
    chosen = random.Random(seed)
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if _name(file).startswith(only)]
    sizes = [file.stat().st_size for file in files]
    for file in Counter(chosen.choices(files, sizes, k=4 * count)):
        if find_tests(_name(file)):
            for mutant in mutants_of(_name(file), file.read_text(encoding="utf-8")):
                functions.setdefault(mutant[:2], []).append(mutant)
    names = chosen.sample(sorted(functions), min(count, len(functions)))
    return [chosen.choice(functions[name]) for name in names]


def _name(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


@cache
def find_tests(file: str) -> tuple[str, ...]:
    """The tests of a module: the file of its name, and those that import it."""
    module = "polyseme." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    folder, _, name = module.rpartition(".")
    imports = rf"{re.escape(module)}\b|from {re.escape(folder)} import .*\b{name}\b"
    found = [
        test.relative_to(TESTS).as_posix()
        for test in sorted(TESTS.rglob("test_*.py"))
        if test.name == f"test_{name}.py" or re.search(imports, test.read_text(encoding="utf-8"))
    ]
    slow = ("reliability/", "journeys/", "docs/")
    return tuple(test for test in found if not test.startswith(slow))


def run_tests(package: Path, tests: tuple[str, ...]) -> int:
    """Pytest's exit code with this copy of the sources; 1 if it does not come to an end."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",  # a file changed twice in a second would be taken for old
    }
    command = [sys.executable, "-m", "pytest", *PYTEST, *(f"tests/{test}" for test in tests)]
    try:
        return subprocess.run(
            command, cwd=TESTS.parent, env=environment, capture_output=True, timeout=SECONDS,
            check=False,
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1


def judge(mutant: Mutant, copies: "SimpleQueue[Path]") -> str:
    """Apply it in a copy that nobody else uses, run its tests, and put the copy right again."""
    package, begin = copies.get(), time.monotonic()
    path = package / mutant.file
    before = path.read_bytes()
    try:
        # As the sources are, but without the comments: what fails by itself would show nothing.
        path.write_text(ast.unparse(ast.parse(before)), encoding="utf-8")
        if run_tests(package, find_tests(mutant.file)):
            outcome = "unsound"
        else:
            path.write_text(mutant.text(), encoding="utf-8")
            outcome = "killed" if run_tests(package, find_tests(mutant.file)) else "SURVIVED"
    finally:
        path.write_bytes(before)
        copies.put(package)
    seconds = time.monotonic() - begin
    print(f"{outcome:9} {seconds:4.0f} s  {mutant.file}: {mutant.function}: {mutant.kind}")
    if outcome != "killed":
        print("    - {}\n    + {}".format(*mutant.diff()))
    sys.stdout.flush()
    return outcome


def sum_up(outcomes: Counter[str]) -> int:
    """The share that was killed; 1 if it is too small."""
    judged = outcomes["killed"] + outcomes["SURVIVED"]
    share = outcomes["killed"] / max(1, judged)
    print(f"{outcomes['killed']} of {judged} killed; {outcomes['unsound']} without a verdict.")
    return int(share < FEWEST_KILLED)


def main() -> int:
    """Draw, judge and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="FOLDER", default="", help="mutants of one folder")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=time.gmtime().tm_yday // 7)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chosen = draw(options.count, options.only, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            package = Path(folder) / str(number) / "polyseme"
            # With the compiled kernel: tests of exact work are to see both ways.
            shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
            copies.put(package)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            return sum_up(Counter(pool.map(lambda mutant: judge(mutant, copies), chosen)))


if __name__ == "__main__":
    sys.exit(main())
