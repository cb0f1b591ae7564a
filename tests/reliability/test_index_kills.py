"""Workers and drivers die while an index is made and sorted; it comes out as if nobody had.

Readers, meanwhile, see the old index or the new one, never a mixture.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from executors.jobs import hashes
from pretraining.making import tiny_model
from required import needs

from polyseme.errors import PolysemeError
from polyseme.meanings.use_index import UseIndex
from polyseme.text.corpus import Corpus
from reliability.killing import driver_dies, local_worker_dies, make_documents, prepare, started

pytestmark = needs(hasattr(os, "fork"), "signals of a POSIX system")
WORDS = ",".join(f"word{number}" for number in range(60))
FEWER = ",".join(f"word{number}" for number in range(20, 50))


def index(model: Path, corpus: Path, out: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "polyseme", "index", str(model), str(corpus)]
    return [*program, "--out", str(out), "--workers", "2", *more]


class Quiet:
    """A model, a corpus in many parts, and the hashes of an index that nothing disturbed."""

    def __init__(self, folder: Path) -> None:
        make_documents(folder / "texts.txt", 600)
        self.corpus, self.model, self.out = folder / "corpus", folder / "model", folder / "index"
        command = prepare(folder / "texts.txt", self.corpus, "--workers", "1")
        command[command.index("65536")] = "16384"
        subprocess.run(command, check=True, capture_output=True)
        torch.manual_seed(1)
        tiny_model(Corpus.open(self.corpus)).save(self.model, card="A model for tests.")
        subprocess.run(
            index(self.model, self.corpus, self.out, "--words", WORDS),
            check=True,
            capture_output=True,
        )
        self.reference = hashes(self.out)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    return Quiet(Path(tmp_path_factory.mktemp("quiet")))


def strike(quiet: Quiet, out: Path, moment: int, blow: Any) -> bool:
    """Start an index, let one blow fall when so many parts are done; False if it was too late."""
    command = index(quiet.model, quiet.corpus, out, "--words", WORDS)
    with (out.parent / "said").open("wb") as said, started(
        command, said=said, folder=out.parent
    ) as driver:  # fmt: skip
        while driver.poll() is None:
            if len(list((out / "receipts").glob("*.json"))) >= moment:
                blow(driver.pid)
                return True
            time.sleep(0.005)
    return False


def test_an_index_is_the_same_whoever_is_killed_while_it_is_made(
    tmp_path: Path, quiet: Quiet
) -> None:
    out = tmp_path / "index"
    struck = [strike(quiet, out, 1, local_worker_dies), strike(quiet, out, 4, driver_dies)]
    assert struck == [True, True]
    command = index(quiet.model, quiet.corpus, out, "--words", WORDS)
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert hashes(out) == quiet.reference


def test_killed_at_any_step_of_the_end_it_is_the_old_or_the_new_one(
    tmp_path: Path, quiet: Quiet
) -> None:
    """A child does what comes after the parts, and is killed at its n-th change of the disk."""
    out = tmp_path / "index"
    context = multiprocessing.get_context("spawn")
    words, states = FEWER, set()
    make = index(quiet.model, quiet.corpus, out)
    subprocess.run([*make, "--words", words], check=True, capture_output=True)
    old = hashes(out)
    for step in (1, 3, 6, 10, 16, 24, 27, 28, 30, 40):
        child = context.Process(target=_make_and_die, args=(quiet, out, step))
        child.start()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        found = UseIndex.open(out)  # one of both, whole
        files = {name: sha for name, sha in hashes(out).items() if name.startswith("data/")}
        for name in found.files.manifest["files"]:
            assert files[name] == (quiet.reference | old)[name]
        states.add(found.files.manifest["key"])
        if child.exitcode == 0:
            break
    subprocess.run([*make, "--words", WORDS, "--replace"], check=True, capture_output=True)
    assert hashes(out) == quiet.reference
    assert len(states) == 2, "no step was before, or none after, the new manifest"


def _make_and_die(quiet: Quiet, out: Path, step: int) -> None:
    """In a process of its own: the same command, in which the n-th change of the end is a death."""
    from polyseme.commands import index as command
    from polyseme.config import build
    from polyseme.meanings import index_build

    torch.set_num_threads(1)
    whole = index_build.settle

    def dying(*given: Any) -> Any:
        left = step

        def count(event: str, _: tuple[Any, ...]) -> None:
            nonlocal left
            if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "os.mkdir"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        return whole(*given)

    index_build.settle = dying
    values = {"model": quiet.model, "folder": quiet.corpus, "out": out, "replace": True,
              "index": {"words": WORDS.split(",")}, "executor": {"workers": 1}}  # fmt: skip
    command.run(build(command.IndexConfig, values))


def _read_again_and_again(corpus: Path, out: Path, stop: Any, answers: Any) -> None:
    """In a process of its own: open, look up a word that both indexes have, tell what was seen."""
    opened, looks, faults = Corpus.open(corpus), 0, []
    seen: set[int] = set()
    while not stop.is_set() or looks < 20:
        try:
            found = UseIndex.open(out).find(opened, "word33")
            seen.add(len(found.describe(found.uses)))
        except PolysemeError as error:
            faults.append(str(error))
        looks += 1
    answers.put((looks, faults, sorted(seen)))


def test_two_readers_never_meet_half_of_what_a_writer_does(tmp_path: Path, quiet: Quiet) -> None:
    out = tmp_path / "index"
    make = index(quiet.model, quiet.corpus, out)
    make[make.index("2")] = "1"
    subprocess.run([*make, "--words", FEWER], check=True, capture_output=True)
    context = multiprocessing.get_context("spawn")
    stop, answers = context.Event(), context.Queue()
    readers = [
        context.Process(target=_read_again_and_again, args=(quiet.corpus, out, stop, answers))
        for _ in range(2)
    ]
    for reader in readers:
        reader.start()
    try:
        for words, more in ((WORDS, ()), (FEWER, ("--max-uses", "5"))):
            command = [*make, "--words", words, "--replace", *more]
            subprocess.run(command, check=True, capture_output=True)
    finally:
        stop.set()
    told = [answers.get(timeout=120) for _ in readers]
    for reader in readers:
        reader.join()
    assert all(faults == [] for _, faults, _ in told)
    whole = len(UseIndex.open(quiet.out).find(Corpus.open(quiet.corpus), "word33").uses)
    small = len(UseIndex.open(out).find(Corpus.open(quiet.corpus), "word33").uses)
    assert small < whole
    assert all(set(seen) <= {whole, small} for _, _, seen in told)
    assert all(looks >= 20 for looks, _, _ in told)
