"""One-line faults put into the sources on purpose: the tests that guard a line must notice.

    python tests/mutants.py [--only ROOM] [--jobs N]     or: make mutants

Each mutant of `mutants.txt` is applied in a copy of the sources, never in the work tree, and the
tests named with it run against the copy. One that survives is a line that no test holds: it needs a
test, or a word in the list why none can be had. The list reads like a diff:

    FILE: why the line matters
    - its text, which occurs exactly once in the file; \\n is a line end
    + what it becomes
    ? the tests that must fail
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "polyseme"
SECONDS = 300  # a mutant that makes tests hang is killed by the clock
STRAIGHT_AWAY = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--timeout=120")

LIST = Path(__file__).with_suffix(".txt")


class Mutant(NamedTuple):
    """A fault, the tests that must notice it, and a written reason if none can."""

    file: str
    why: str
    old: str
    new: str
    tests: tuple[str, ...]
    explained: str = ""

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")

    def apply(self, package: Path) -> str:
        """Put the fault into a copy of the package; the file as it was."""
        path = package / self.file
        before = path.read_text(encoding="utf-8")
        if before.count(self.old) != 1:
            raise ValueError(f"{self.file} has {before.count(self.old)} times: {self.old}")
        path.write_text(before.replace(self.old, self.new), encoding="utf-8")
        return before


def mutants() -> Iterator[Mutant]:
    """Those of the list. Before its tests, a line that begins with = says why one may live."""
    file = why = old = new = explained = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        text = line[2:].replace("\\n", "\n")
        match line[:2]:
            case "- ":
                old = text
            case "+ ":
                new = text
            case "= ":
                explained = text
            case "? ":
                yield Mutant(file, why, old, new, tuple(text.split()), explained)
            case "":
                continue
            case _:
                (file, _, why), explained = line.partition(": "), ""


def run_tests(
    package: Path, tests: tuple[str, ...], *, seconds: float = SECONDS
) -> tuple[int, str]:
    """Pytest's exit code with this copy of the sources, and what it said last."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",  # a file changed twice in a second would be taken for old
        "CI": "true",  # a test that skips guards nothing
    }
    command = [sys.executable, "-m", "pytest", *STRAIGHT_AWAY, "-m", "not slow"]
    command += [f"tests/{test}" for test in tests]
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, "no end"
    return run.returncode, run.stdout[-2000:] + run.stderr[-500:]


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    seconds: float
    said: str = ""


def judge(mutant: Mutant, copies: "SimpleQueue[Path]") -> Verdict:
    """Apply it in a copy that nobody else uses, run its tests, and put the copy right again."""
    package, begin = copies.get(), time.monotonic()
    before = mutant.apply(package)
    code, said = run_tests(package, mutant.tests)
    (package / mutant.file).write_text(before, encoding="utf-8")
    copies.put(package)
    # 1: a test failed. 2: a file of tests could not even be imported, which shows nothing.
    survived = "explained" if mutant.explained else "SURVIVED"
    outcome = {0: survived, 1: "killed"}.get(code, f"ERROR {code}")
    return Verdict(mutant, outcome, time.monotonic() - begin, said)


def main() -> int:
    """Judge all that are asked for; 1 if any survived without a reason."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="ROOM", help="mutants of one room")
    parser.add_argument("--jobs", type=int, default=1)
    told = parser.parse_args()
    chosen = [mutant for mutant in mutants() if told.only in (None, mutant.room)]
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(told.jobs):
            copy = Path(folder) / str(number) / "polyseme"
            # With the compiled kernel: tests of exact work are to see both ways.
            shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
            copies.put(copy)
        if not passes_unharmed(chosen, Path(folder) / "0" / "polyseme"):
            return 2
        verdicts = []
        with concurrent.futures.ThreadPoolExecutor(told.jobs) as pool:
            for verdict in pool.map(lambda mutant: judge(mutant, copies), chosen):
                verdicts.append(verdict)
                tell(verdict, len(verdicts), len(chosen))
    return sum_up(verdicts)


def passes_unharmed(chosen: list[Mutant], package: Path) -> bool:
    """Whether the tests pass without any fault; otherwise a failure would say nothing."""
    tests = tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
    code, said = run_tests(package, tests, seconds=4 * SECONDS)
    if code:
        print(f"The tests fail without any mutant:\n{said}")
    return code == 0


def tell(verdict: Verdict, number: int, of: int) -> None:
    """A line of progress, and what pytest said of a mutant that was not killed."""
    mutant = verdict.mutant
    print(
        f"{number:3}/{of} {verdict.outcome:9} {verdict.seconds:5.1f} s  {mutant.file}: {mutant.why}"
    )
    if verdict.outcome.isupper() or verdict.outcome.startswith("ERROR"):
        print(f"      - {mutant.old}\n      + {mutant.new}\n{verdict.said}")
    sys.stdout.flush()


def sum_up(verdicts: list[Verdict]) -> int:
    """The table by room."""
    print(f"\n{'room':12} killed  not  seconds")
    for room in dict.fromkeys(verdict.mutant.room for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.mutant.room == room]
        killed = sum(verdict.outcome == "killed" for verdict in own)
        seconds = sum(verdict.seconds for verdict in own)
        print(f"{room:12} {killed:6} {len(own) - killed:4} {seconds:8.0f}")
    for verdict in verdicts:
        if verdict.outcome == "explained":
            print(f"{verdict.mutant.file} lives: {verdict.mutant.explained}")
    bad = [verdict for verdict in verdicts if verdict.outcome not in ("killed", "explained")]
    print(f"{len(verdicts)} mutants, {len(bad)} survived without a reason.")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
