"""The first day: how long and how large an installation is, and when the first results are there.

    make wheels
    python benchmarks/first_day.py --texts novels/ --word bank
    python benchmarks/first_day.py --demo

A new virtual environment; the wheels of dist/ and what they need, by pip; then, each in a process
of its own as a user would start it: the first vectors, a corpus of the texts, groups of one of its
words. Wall seconds, and seconds of processor time, which tell more on a machine that is busy. What
--demo: what the README says instead, the explorer with a model and texts by one command, and
`polyseme demo` until it has an address. What pip downloads comes from wherever it is set to look:
the time of a download is not ours to tell.
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

VECTORS = """
import polyseme
[sentence] = polyseme.load("{model}").embed("{text}")
print(sentence.words, sentence.vectors.shape)
"""
SENTENCES = {"en": "She plays the piano.", "zh": "他在银行工作。"}


def timed(what: str, command: Sequence[str | Path], folder: Path) -> float:
    """Run a command, print its times; stop everything if it fails."""
    before, begin = os.times(), time.perf_counter()
    done = subprocess.run(
        [*map(str, command)], check=False, cwd=folder, capture_output=True, text=True
    )
    wall, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{done.stdout}\n{done.stderr}")
    user = after.children_user - before.children_user
    system = after.children_system - before.children_system
    print(f"{what:<44}{wall:>8.1f}{user + system:>12.1f}", flush=True)
    return wall


def megabytes(folder: Path) -> float:
    """Of all files, links not followed."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


class Walk:
    """A virtual environment, and commands in it."""

    def __init__(self, folder: Path, wheels: Path, constraints: Path, language: str) -> None:
        self.folder, self.language = folder, language
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.site = folder / "venv"
        self.constraints = constraints
        [self.wheel] = wheels.glob("polyseme-*-py3-none-[!a]*.whl")
        self.data = [
            next(wheels.glob(f"polyseme_{name}-*.whl"))
            for name in (f"{language}_mini", f"demo_{language}")
        ]

    def install(self, what: str, *packages: str | Path) -> None:
        """By pip, with the times and what it adds."""
        before = megabytes(self.site)
        pip = (self.bin / "python", "-m", "pip", "install", "--quiet", "-c", self.constraints)
        timed(what, [*pip, *packages], self.folder)
        print(f"{'':<4}{megabytes(self.site) - before:,.0f} MB more on disk")

    def run(self, what: str, *words: str | Path) -> float:
        """A command of Polyseme."""
        return timed(what, [self.bin / "polyseme", *words], self.folder)


def walk(walk: Walk, python: str, texts: Path, words: Sequence[str]) -> None:
    """All steps."""
    print(f"{'':<44}{'seconds':>8}{'of them CPU':>12}")
    timed("new virtual environment", [python, "-m", "venv", walk.folder / "venv"], walk.folder)
    walk.install("install the core", walk.wheel)
    walk.install("install a model and the demo texts", *walk.data)
    extras = "senses,zh" if walk.language == "zh" else "senses"
    walk.install(f"install the extras {extras}", f"{walk.wheel}[{extras}]")
    model = f"{walk.language}-mini"
    code = VECTORS.format(model=model, text=SENTENCES[walk.language])
    timed("first vectors, in Python", [walk.bin / "python", "-c", code], walk.folder)
    spent = walk.run(
        "prepare the texts", "prepare", texts, "--language", walk.language, "--out", "corpus"
    )
    for word in words:
        spent += walk.run(f"groups of {word!r}", "senses", word, "--in", "corpus", "--model", model)
    print(f"from a folder of texts to groups of {len(words)}: {spent:.1f} s")


def walk_demo(walk: Walk, python: str, wheels: Path) -> None:
    """What the README says, from the wheels."""
    print(f"{'':<44}{'seconds':>8}{'of them CPU':>12}")
    timed("new virtual environment", [python, "-m", "venv", walk.folder / "venv"], walk.folder)
    model = {"en": "novels", "zh": "classics"}[walk.language]
    data = f"polyseme-{walk.language}-{model}", f"polyseme-demo-{walk.language}"
    # By --find-links, so that pip chooses the wheel with the kernel where it fits.
    walk.install("polyseme[explorer], a model, texts", "--find-links", wheels,
                 "polyseme[explorer]", *data)  # fmt: skip
    command = [walk.bin / "polyseme", "demo", "--language", walk.language, "--no-browser"]
    command += ["--cache", walk.folder / "cache"]
    for what in ("demo, until its address, the first time", "the same, again"):
        begin = time.perf_counter()
        with subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server:
            assert server.stdout is not None
            told = next((line for line in server.stdout if "http://127" in line), None)
            print(f"{what:<44}{time.perf_counter() - begin:>8.1f}", flush=True)
            server.terminate()
        if told is None:
            raise SystemExit("the demo ended without an address")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheels", type=Path, default=Path("dist"), help="what `make wheels` made")
    parser.add_argument("--constraints", type=Path, default=Path("constraints.txt"))
    parser.add_argument("--texts", type=Path, help="a folder of one's own")
    parser.add_argument("--word", action="append", default=[], help="to group; may be repeated")
    parser.add_argument("--demo", action="store_true", help="the README's first commands instead")
    parser.add_argument("--language", choices=sorted(SENTENCES), default="en")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--keep", type=Path, help="do it in this folder, and leave it there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        constraints = given.constraints.resolve()
        made = Walk(folder, given.wheels.resolve(), constraints, given.language)
        if given.demo:
            walk_demo(made, given.python, given.wheels.resolve())
        elif given.texts is None or not given.word:
            parser.error("--texts and --word are needed, or --demo")
        else:
            walk(made, given.python, given.texts.resolve(), given.word)


if __name__ == "__main__":
    main()
