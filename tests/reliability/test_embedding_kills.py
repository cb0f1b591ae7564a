"""Workers, nodes and drivers die while a corpus is embedded; no vector is lost or made twice."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from executors.jobs import hashes
from pretraining.making import tiny_model

from polyseme.embedding.folder import VectorFolder
from polyseme.text.corpus import Corpus
from reliability.killing import KilledRun, driver_dies, local_worker_dies, make_documents, prepare
from reliability.mortal_cluster import RayCluster, three_nodes

QUICK, FULL = 1_500, 10_000


def embed(model: Path, corpus: Path, out: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "polyseme", "embed", "--model", str(model), str(corpus)]
    return [*program, "--layers", "top", "--out", str(out), *more]


class Quiet:
    """A model, a corpus in many shards, and the hashes of a run that nothing disturbed."""

    def __init__(self, folder: Path, documents: int) -> None:
        make_documents(folder / "texts.txt", documents)
        self.corpus, self.model = folder / "corpus", folder / "model"
        command = prepare(folder / "texts.txt", self.corpus, "--workers", "2")
        # Many small shards, so that a blow can fall at many moments.
        command[command.index("65536")] = "16384"
        subprocess.run(command, check=True, capture_output=True)
        torch.manual_seed(1)
        tiny_model(Corpus.open(self.corpus)).save(self.model, card="A model for tests.")
        out = folder / "vectors"
        command = embed(self.model, self.corpus, out, "--workers", "2")
        subprocess.run(command, check=True, capture_output=True)
        self.reference = hashes(out)
        counts = VectorFolder.open(out).manifest["counts"]
        assert counts["vectors"] == Corpus.open(self.corpus).read_stats["words"]


_MADE: dict[int, Quiet] = {}


@pytest.fixture
def quiet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    documents: int = request.param
    if documents not in _MADE:
        _MADE[documents] = Quiet(Path(tmp_path_factory.mktemp("quiet")), documents)
    return _MADE[documents]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    with three_nodes(monkeypatch) as nodes:
        yield nodes


@pytest.mark.parametrize(
    ("quiet", "worker_kills", "driver_kills"),
    [(QUICK, 2, 1), pytest.param(FULL, 10, 3, marks=pytest.mark.slow)],
    indirect=["quiet"],
)
def test_vectors_made_here_are_the_same_whoever_is_killed(
    tmp_path: Path, quiet: Quiet, worker_kills: int, driver_kills: int
) -> None:
    out = tmp_path / "vectors"
    command = embed(quiet.model, quiet.corpus, out, "--workers", "2")
    run = KilledRun(command, out, quiet.reference)
    blows = [*[local_worker_dies] * worker_kills, *[driver_dies] * driver_kills]
    run.strike(blows, seed=1)
    assert run.struck == len(blows)
    assert run.wrong == []
    assert hashes(out) == quiet.reference


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("quiet", "worker_kills", "node_kills", "driver_kills"),
    [
        pytest.param(QUICK, 1, 1, 1, marks=pytest.mark.slow),
        pytest.param(FULL, 10, 2, 3, marks=pytest.mark.slow),
    ],
    indirect=["quiet"],
)
def test_vectors_made_on_ray_are_the_same_whoever_is_killed(
    tmp_path: Path,
    quiet: Quiet,
    cluster: RayCluster,
    worker_kills: int,
    node_kills: int,
    driver_kills: int,
) -> None:
    out = tmp_path / "vectors"
    on_ray = ("--backend", "ray", "--ray-address", cluster.address)
    run = KilledRun(embed(quiet.model, quiet.corpus, out, *on_ray), out, quiet.reference)
    blows = [cluster.worker_dies] * worker_kills + [cluster.node_dies] * node_kills
    run.strike([*blows, *[driver_dies] * driver_kills], seed=2)
    assert run.struck == worker_kills + node_kills + driver_kills
    assert run.wrong == []
    assert hashes(out) == quiet.reference
