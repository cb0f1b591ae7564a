"""Workers and drivers die while an index is made and sorted; it comes out as if nobody had.

Readers, meanwhile, see the old index or the new one, never a mixture.
"""

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from executors.jobs import hashes
from meanings.making import make_corpus
from pretraining.making import tiny_model
from required import needs

from polyseme.commands.index import IndexConfig, run
from polyseme.config import build
from polyseme.errors import PolysemeError
from polyseme.meanings.index.use_index import UseIndex
from polyseme.text.corpus import Corpus
from reliability.dying import DEATH
from reliability.forked import context
from reliability.killing import Blow, driver_dies, local_worker_dies, started

pytestmark = needs(hasattr(os, "fork"), "signals of a POSIX system")
WORDS = [f"word{number}" for number in range(40)]
FEWER = WORDS[20:35]


class Quiet:
    """A model, a corpus in many parts, and the hashes of an index that nothing disturbed."""

    def __init__(self, folder: Path, documents: int) -> None:
        lines = [
            " ".join(f"{WORDS[n * 7 % 40]} meets {WORDS[(n + d) % 40]} here ." for n in range(60))
            for d in range(documents)
        ]
        corpus = make_corpus(folder / "c", [(line, {}) for line in lines], shard_bytes=4096)
        self.corpus, self.model, self.out = corpus.folder, folder / "model", folder / "index"
        torch.manual_seed(1)
        tiny_model(corpus).save(self.model, card="A model for tests.")
        make(self, self.out, WORDS)
        self.reference = hashes(self.out)
        assert len(corpus.shards) > documents // 5


def make(quiet: Quiet, out: Path, words: list[str], **settings: Any) -> None:
    values = {"model": quiet.model, "corpus": quiet.corpus, "out": out, "replace": True,
              "index": {"words": words, **settings}, "executor": {"workers": 1}}  # fmt: skip
    run(build(IndexConfig, values))


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    return Quiet(Path(tmp_path_factory.mktemp("quiet")), 6)


def command_of(quiet: Quiet, out: Path, *more: str) -> list[str]:
    """The words after `polyseme`."""
    words = ["index", "--model", str(quiet.model), str(quiet.corpus), "--out", str(out)]
    return [*words, "--words", ",".join(WORDS), *more]


def strike(words: list[str], out: Path, blows: list[tuple[int, Blow]]) -> int | None:
    """Run it; each blow falls when so many parts are done. Says how the driver ended."""
    with started(words, out.with_suffix(".said")) as driver:
        while blows and driver.poll() is None:
            reached = len(list((out / "receipts").glob("*.json"))) >= blows[0][0]
            if reached and blows[0][1](driver):
                blows.pop(0)
            time.sleep(0.002)
        return driver.wait()


def test_an_index_is_the_same_whoever_is_killed_while_it_is_made(tmp_path: Path) -> None:
    quiet = Quiet(tmp_path, 60)  # in many parts, so that a blow finds some undone
    out = tmp_path / "again"
    blows: list[tuple[int, Blow]] = [(1, local_worker_dies), (3, driver_dies)]
    assert strike(command_of(quiet, out, "--workers", "2"), out, blows) == -signal.SIGKILL
    assert not (out / "manifest.json").exists()
    make(quiet, out, WORDS)
    assert hashes(out) == quiet.reference


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_two_hundred_moments_it_is_never_half_an_index(tmp_path: Path) -> None:
    quiet = Quiet(tmp_path, 60)
    out, choose = tmp_path / "again", random.Random(1)
    command, finished, killed = command_of(quiet, out, "--workers", "1"), 0, 0
    began = time.monotonic()
    with started(command, tmp_path / "said") as driver:
        assert driver.wait() == 0
    whole = time.monotonic() - began
    while killed < 200:
        if (out / "manifest.json").exists():
            assert hashes(out).items() >= quiet.reference.items()
            shutil.rmtree(out)
        with started(command, tmp_path / "said") as driver:
            finished += (code := driver.wait(choose.uniform(0.2, 1.0) * whole)) == 0
            killed += code is None and driver_dies(driver)
        if (out / "manifest.json").exists():
            is_whole(out, quiet.reference)
    make(quiet, out, WORDS)
    assert hashes(out) == quiet.reference
    assert finished > 5  # what was done before a death is not done again


def test_stopped_at_any_change_it_is_the_old_or_the_new_one(tmp_path: Path, quiet: Quiet) -> None:
    out = tmp_path / "index"
    make(quiet, out, FEWER)
    known = quiet.reference | hashes(out)
    with DEATH.watching(out):
        make(quiet, out, WORDS)
    changes, keys = DEATH.seen, []
    some = {1 + turn * changes // 20 for turn in range(20)}
    for at in sorted(some | set(range(changes - 20, changes + 1))):
        make(quiet, out, FEWER)
        with DEATH.watching(out, at):
            make(quiet, out, WORDS)
        keys.append(is_whole(out, known))
    make(quiet, out, WORDS)
    assert hashes(out) == quiet.reference
    assert len(set(keys)) == 2, "no change was before, or none after, the new manifest"


def is_whole(out: Path, known: dict[str, str]) -> str:
    """Which index it is; each of its files is as it was made without a death."""
    manifest = UseIndex.open(out).files.manifest
    found = hashes(out)
    assert all(found[name] == known[name] for name in manifest["files"])
    return str(manifest["key"])


def _read_again_and_again(corpus: Path, out: Path, stop: Any, answers: Any, least: int) -> None:
    """In a process of its own: open, look up a word that both indexes have, tell what was seen."""
    opened, looks, faults = Corpus.open(corpus), 0, []
    seen: set[int] = set()
    answers.put("begun")
    while not stop.is_set() or looks < least:
        try:
            found = UseIndex.open(out).find(opened, "word33")
            seen.add(len(found.encode(found.uses)))
        except PolysemeError as error:
            faults.append(str(error))
        looks += 1
        if looks == least:
            answers.put("enough")
    answers.put((looks, faults, sorted(seen)))


@pytest.mark.parametrize("looks", [20, pytest.param(10_000, marks=pytest.mark.slow)])
def test_two_readers_never_meet_half_of_what_a_writer_does(
    tmp_path: Path, quiet: Quiet, looks: int
) -> None:
    out = tmp_path / "index"
    make(quiet, out, FEWER)
    stop, answers = context().Event(), [context().Queue() for _ in range(2)]  # each in its order
    readers = [
        context().Process(target=_read_again_and_again, args=(quiet.corpus, out, stop, own, looks))
        for own in answers
    ]
    for reader in readers:
        reader.start()
    try:
        assert [own.get(timeout=200) for own in answers] == ["begun"] * 2
        turn = enough = 0
        while turn < 4 or enough < len(readers):
            make(quiet, out, FEWER if turn % 2 else WORDS, max_uses=(5_000, 5)[turn % 2])
            turn += 1
            enough += sum(own.get() == "enough" for own in answers if not own.empty())
        make(quiet, out, FEWER, max_uses=5)
    finally:
        stop.set()
    told = [own.get(timeout=200) for own in answers]
    for reader in readers:
        reader.join()
    corpus = Corpus.open(quiet.corpus)
    whole, small = (
        len(UseIndex.open(each).find(corpus, "word33").uses) for each in (quiet.out, out)
    )
    assert small < whole
    assert [faults[:3] for _, faults, _ in told] == [[], []]
    assert all(set(seen) <= {whole, small} for _, _, seen in told)
    assert all(own >= looks for own, _, _ in told)
