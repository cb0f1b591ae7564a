"""Workers and drivers die while an index is made and sorted; it comes out as if nobody had.

Readers, meanwhile, see the old index or the new one, never a mixture.
"""

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from executors.jobs import hashes
from meanings.making import make_corpus
from pretraining.making import tiny_model
from required import needs

from polyseme.commands.index import IndexConfig, run
from polyseme.config import build
from polyseme.errors import PolysemeError
from polyseme.meanings.index import build as index_build
from polyseme.meanings.index import word_range
from polyseme.meanings.index.use_index import UseIndex
from polyseme.text.corpus import Corpus
from reliability.killing import Blow, driver_dies, local_worker_dies, started
from reliability.mortal_cluster import RayCluster, three_nodes

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
    command = [
        sys.executable,
        "-m",
        "polyseme",
        "index",
        "--model",
        str(quiet.model),
        str(quiet.corpus),
    ]
    return [*command, "--out", str(out), "--words", ",".join(WORDS), *more]


def strike(command: list[str], out: Path, blows: list[tuple[int, Blow]]) -> int:
    """Run it; each blow falls when so many parts are done. Says how the driver ended."""
    with tempfile.TemporaryFile() as said, started(command, said=said, folder=out.parent) as driver:
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
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - began
    while killed < 200:
        if (out / "manifest.json").exists():
            assert hashes(out).items() >= quiet.reference.items()
            shutil.rmtree(out)
        with tempfile.TemporaryFile() as said, started(
            command, said=said, folder=tmp_path
        ) as driver:  # fmt: skip
            try:
                finished += driver.wait(timeout=choose.uniform(0.2, 1.0) * whole) == 0
            except subprocess.TimeoutExpired:
                driver_dies(driver)
                killed += 1
        if (out / "manifest.json").exists():
            is_whole(out, quiet.reference)
    make(quiet, out, WORDS)
    assert hashes(out) == quiet.reference
    assert finished > 5  # what was done before a death is not done again


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    with three_nodes(monkeypatch) as nodes:
        yield nodes


@pytest.mark.cluster
@pytest.mark.slow
def test_an_index_made_on_ray_is_the_same_whoever_is_killed(
    tmp_path: Path, cluster: RayCluster
) -> None:
    quiet = Quiet(tmp_path, 60)
    out = tmp_path / "on-ray"
    command = command_of(quiet, out, "--backend", "ray", "--ray-address", cluster.address)
    blows: list[tuple[int, Blow]] = [(1, cluster.worker_dies), (3, driver_dies)]
    assert strike(command, out, blows) == -signal.SIGKILL
    done = len(list((out / "receipts").glob("*.json")))
    blows = [(done + 2, cluster.node_dies)]
    assert strike(command, out, blows) == 0
    assert blows == []
    assert hashes(out) == quiet.reference


@pytest.mark.cluster
def test_ranges_sorted_on_ray_are_those_sorted_here(
    tmp_path: Path, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_range, "BUFFER", 5_000)
    quiet = Quiet(tmp_path, 6)
    assert len(list((quiet.out / "uses").iterdir())) > 5
    values = {"model": quiet.model, "corpus": quiet.corpus, "out": tmp_path / "on-ray",
              "index": {"words": WORDS},
              "executor": {"backend": "ray", "ray_address": cluster.address}}  # fmt: skip
    run(build(IndexConfig, values))
    assert hashes(tmp_path / "on-ray") == quiet.reference


class DeathError(BaseException):
    """Nothing that is written catches it."""


_CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")
_blow: list[Any] = [0, None]  # what is left of the changes before it falls, and the blow


def _count(event: str, _: tuple[Any, ...]) -> None:
    if event in _CHANGES and _blow[1] is not None:
        _blow[0] -= 1
        if _blow[0] == 0:
            _blow[1]()


@contextmanager
def dying_at(step: int, blow: Any) -> Iterator[None]:
    """In what follows the parts, the n-th change of the disk is a death."""
    whole = index_build.write_index

    def dying(*given: Any) -> Any:
        _blow[:] = [step, blow]
        try:
            return whole(*given)
        finally:
            _blow[1] = None

    with patch.object(index_build, "write_index", dying):
        yield


def die() -> None:
    raise DeathError


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _make_and_die(quiet: Quiet, out: Path, step: int) -> None:
    """In a process of its own."""
    torch.set_num_threads(1)
    sys.addaudithook(_count)
    with dying_at(step, kill_myself):
        make(quiet, out, WORDS)


def test_stopped_at_any_step_of_the_end_it_is_the_old_or_the_new_one(
    tmp_path: Path, quiet: Quiet
) -> None:
    out = tmp_path / "index"
    make(quiet, out, FEWER)
    known = quiet.reference | hashes(out)
    sys.addaudithook(_count)
    keys = []
    for step in range(1, 60):
        try:
            with dying_at(step, die):
                make(quiet, out, WORDS)
        except DeathError:
            keys.append(is_whole(out, known))
        else:
            break
        if keys.count(keys[-1]) == 3 and keys[-1] != keys[0]:
            break  # the rest is removing what nobody reads any more
        if keys[-1] != keys[0]:  # the new one is there, and would be left alone
            make(quiet, out, FEWER)
    make(quiet, out, WORDS)
    assert hashes(out) == quiet.reference
    assert len(keys) > 15
    assert len(set(keys)) == 2, "no step was before, or none after, the new manifest"


def is_whole(out: Path, known: dict[str, str]) -> str:
    """Which index it is; each of its files is as it was made without a death."""
    manifest = UseIndex.open(out).files.manifest
    found = hashes(out)
    assert all(found[name] == known[name] for name in manifest["files"])
    return str(manifest["key"])


@pytest.mark.parametrize("step", [8, 16])
def test_killed_at_a_step_of_the_end_it_is_the_old_or_the_new_one(
    tmp_path: Path, quiet: Quiet, step: int
) -> None:
    out = tmp_path / "index"
    make(quiet, out, FEWER)
    known = quiet.reference | hashes(out)
    child = multiprocessing.get_context("spawn").Process(
        target=_make_and_die, args=(quiet, out, step)
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    is_whole(out, known)
    make(quiet, out, WORDS)
    assert hashes(out) == quiet.reference


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
    context = multiprocessing.get_context("spawn")
    stop, answers = context.Event(), [context.Queue() for _ in range(2)]  # each in its own order
    readers = [
        context.Process(target=_read_again_and_again, args=(quiet.corpus, out, stop, own, looks))
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
