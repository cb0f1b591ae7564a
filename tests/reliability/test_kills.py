"""Workers, nodes and drivers die at random moments; the corpus is the same to the last byte."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from executors.jobs import hashes

from reliability.killing import (
    KilledRun,
    driver_dies,
    local_worker_dies,
    make_documents,
    prepare,
)
from reliability.mortal_cluster import TESTS, RayCluster, three_nodes

QUICK, FULL = 3_000, 10_000


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, dict[str, str]]]:
    """For each number of documents asked for: the text, and all hashes of a quiet local run."""
    return _Quiet(tmp_path_factory)


class _Quiet(dict[int, tuple[Path, dict[str, str]]]):
    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory

    def __missing__(self, number: int) -> tuple[Path, dict[str, str]]:
        folder = self._factory.mktemp("quiet")
        make_documents(folder / "texts.txt", number)
        out = folder / "corpus"
        subprocess.run(
            prepare(folder / "texts.txt", out, "--workers", "1"), check=True, capture_output=True
        )
        self[number] = folder / "texts.txt", hashes(out)
        return self[number]


Corpora = dict[int, tuple[Path, dict[str, str]]]


@pytest.mark.parametrize(
    ("documents", "worker_kills", "driver_kills"),
    [(QUICK, 3, 1), pytest.param(FULL, 10, 3, marks=pytest.mark.slow)],
)
def test_a_local_run_comes_out_the_same_whoever_is_killed(
    tmp_path: Path, corpora: Corpora, documents: int, worker_kills: int, driver_kills: int
) -> None:
    source, reference = corpora[documents]
    out = tmp_path / "corpus"
    run = KilledRun(prepare(source, out, "--workers", "2"), out, reference)
    blows = [*[local_worker_dies] * worker_kills, *[driver_dies] * driver_kills]
    run.strike(blows, seed=documents)
    assert run.struck == worker_kills + driver_kills
    assert run.wrong == []
    assert hashes(out) == reference


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    with three_nodes(monkeypatch) as nodes:
        yield nodes


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("documents", "worker_kills", "node_kills", "driver_kills"),
    [(QUICK, 2, 1, 1), pytest.param(FULL, 10, 2, 3, marks=pytest.mark.slow)],
)
def test_a_ray_run_comes_out_as_the_local_one_whoever_is_killed(
    tmp_path: Path,
    corpora: Corpora,
    cluster: RayCluster,
    documents: int,
    worker_kills: int,
    node_kills: int,
    driver_kills: int,
) -> None:
    source, reference = corpora[documents]
    out = tmp_path / "corpus"
    on_ray = ("--backend", "ray", "--ray-address", cluster.address)
    run = KilledRun(prepare(source, out, *on_ray), out, reference)
    run.strike(
        [cluster.worker_dies] * worker_kills
        + [cluster.node_dies] * node_kills
        + [driver_dies] * driver_kills,
        seed=documents,
    )
    assert run.struck == worker_kills + node_kills + driver_kills
    assert run.wrong == []
    assert hashes(out) == reference


def strike_copies(folder: Path, manner: str) -> list[str]:
    """What is found torn when workers of `slow_copies` are killed."""
    script = [sys.executable, "-m", "reliability.slow_copies"]
    subprocess.run(
        [*script, folder / "in", folder / "quiet", "careful"], check=True, timeout=60, cwd=TESTS
    )
    reference = hashes(folder / "quiet")
    out = folder / manner
    run = KilledRun([*script, str(folder / "in"), str(out), manner], out, reference)
    run.folder = TESTS
    run.strike([local_worker_dies] * 6, seed=1)
    assert hashes(out) == reference
    return run.wrong


def test_the_check_sees_files_that_are_written_in_place(tmp_path: Path) -> None:
    assert strike_copies(tmp_path, "careless") != []


def test_the_check_finds_nothing_wrong_with_the_same_run_done_carefully(tmp_path: Path) -> None:
    assert strike_copies(tmp_path, "careful") == []
