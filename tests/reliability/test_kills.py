"""Workers, nodes and drivers die at random moments; what is made is the same to the last byte."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from command_line import polyseme
from executors.jobs import hashes
from pretraining.making import tiny_model

from polyseme.commands.index import IndexConfig
from polyseme.commands.index import run as make_index
from polyseme.config import build
from polyseme.embedding.folder import VectorFolder
from polyseme.meanings.index import word_range
from polyseme.text.corpus import Corpus
from reliability.forked import Forked
from reliability.forked import polyseme as polyseme_alone
from reliability.killing import (
    Blow,
    KilledRun,
    driver_dies,
    local_worker_dies,
    make_documents,
    prepare,
)
from reliability.mortal_cluster import RayCluster, three_nodes
from reliability.slow_copies import copy_slowly
from reliability.test_index_kills import WORDS, Quiet, command_of, strike

FULL = (pytest.mark.slow, pytest.mark.timeout(3_600))


@dataclass(frozen=True)
class Job:
    """A command without its place, and the hashes of a quiet local run."""

    words: Callable[[Path], list[str]]
    reference: dict[str, str]


def prepare_job(folder: Path, documents: int) -> Job:
    make_documents(folder / "texts.txt", documents)
    words = partial(prepare, folder / "texts.txt")
    polyseme(*words(folder / "corpus"), "--workers", "1")
    return Job(words, hashes(folder / "corpus"))


def embed_job(folder: Path, documents: int) -> Job:
    """Of a corpus in many shards, so that a blow can fall at many moments."""
    prepare_job(folder, documents)
    corpus, out = folder / "corpus", folder / "vectors"
    torch.manual_seed(1)
    tiny_model(Corpus.open(corpus)).save(folder / "model", card="A model for tests.")
    begin = ["embed", "--model", str(folder / "model"), str(corpus), "--layers", "top", "--out"]
    polyseme(*begin, out, "--workers", "1")
    counts = VectorFolder.open(out).manifest["counts"]
    assert counts["vectors"] == Corpus.open(corpus).read_stats["words"]
    return Job(lambda place: [*begin, str(place)], hashes(out))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Job]:
    """Each made once."""
    make = {"prepare": prepare_job, "embed": embed_job}
    return cache(lambda name, number: make[name](tmp_path_factory.mktemp(name), number))


@pytest.mark.parametrize(
    ("name", "documents", "worker_kills", "driver_kills"),
    [
        ("prepare", 2_000, 3, 1),
        ("embed", 800, 2, 1),
        pytest.param("prepare", 10_000, 10, 3, marks=FULL),
        pytest.param("embed", 10_000, 10, 3, marks=FULL),
    ],
)
def test_what_is_made_here_is_the_same_whoever_is_killed(
    tmp_path: Path,
    jobs: Callable[[str, int], Job],
    name: str,
    documents: int,
    worker_kills: int,
    driver_kills: int,
) -> None:
    job, out = jobs(name, documents), tmp_path / "out"
    words = [*job.words(out), "--workers", "2"]
    run = KilledRun(lambda said: Forked(polyseme_alone, *words, said=said), out, job.reference)
    run.strike([*[local_worker_dies] * worker_kills, *[driver_dies] * driver_kills], seed=1)
    assert run.struck == worker_kills + driver_kills
    assert run.wrong == []
    assert hashes(out) == job.reference


def test_the_check_sees_files_that_are_written_in_place(tmp_path: Path) -> None:
    def start(out: Path, manner: str) -> Forked:
        return Forked(copy_slowly, tmp_path / "in", out, manner, said=out.with_suffix(".said"))

    assert start(tmp_path / "quiet", "careful").wait(60) == 0
    reference, out = hashes(tmp_path / "quiet"), tmp_path / "careless"
    run = KilledRun(lambda _: start(out, "careless"), out, reference)
    run.strike([local_worker_dies] * 4, seed=1)
    assert hashes(out) == reference
    assert run.wrong != []


# --- on Ray ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    """One for all: where a node dies, another comes."""
    with pytest.MonkeyPatch.context() as patch, three_nodes(patch) as nodes:
        yield nodes


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("name", "documents", "kills"),
    [
        ("prepare", 2_000, (2, 1, 1)),
        pytest.param("embed", 800, (1, 1, 1), marks=FULL),
        pytest.param("prepare", 10_000, (10, 2, 3), marks=FULL),
        pytest.param("embed", 10_000, (10, 2, 3), marks=FULL),
    ],
)
def test_what_is_made_on_ray_is_the_same_whoever_is_killed(
    tmp_path: Path,
    jobs: Callable[[str, int], Job],
    cluster: RayCluster,
    name: str,
    documents: int,
    kills: tuple[int, int, int],
) -> None:
    """So many workers, nodes and drivers."""
    job, out = jobs(name, documents), tmp_path / "out"
    words = [*job.words(out), "--backend", "ray", "--ray-address", cluster.address]
    run = KilledRun(lambda said: Forked(polyseme_alone, *words, said=said), out, job.reference)
    deaths: tuple[Blow, ...] = (cluster.worker_dies, cluster.node_dies, driver_dies)
    each = zip(deaths, kills, strict=True)
    run.strike([blow for blow, times in each for _ in range(times)], seed=2)
    assert run.struck == sum(kills)
    assert run.wrong == []
    assert hashes(out) == job.reference


@pytest.mark.cluster
@pytest.mark.slow
def test_an_index_made_on_ray_is_the_same_whoever_is_killed(
    tmp_path: Path, cluster: RayCluster
) -> None:
    quiet = Quiet(tmp_path, 60)
    out = tmp_path / "on-ray"
    words = command_of(quiet, out, "--backend", "ray", "--ray-address", cluster.address)
    blows: list[tuple[int, Blow]] = [(1, cluster.worker_dies), (3, driver_dies)]
    assert strike(words, out, blows) == -signal.SIGKILL
    done = len(list((out / "receipts").glob("*.json")))
    blows = [(done + 2, cluster.node_dies)]
    assert strike(words, out, blows) == 0
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
    make_index(build(IndexConfig, values))
    assert hashes(tmp_path / "on-ray") == quiet.reference
