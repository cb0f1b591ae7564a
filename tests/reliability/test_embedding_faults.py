"""A full or failing disk while a corpus is embedded: told, and nothing lost (B8)."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from embedding.bulk_cases import Case, make_case
from executors.jobs import hashes
from required import needs

from reliability import traced
from reliability.small_disk import resize
from reliability.test_commit_points import FAULTS, TIDYING, finished
from reliability.test_training import assert_nearly_all
from reliability.traced import Point, list_points, python, run_with, sample

needs_strace = needs(traced.why_not() is None, traced.why_not() or "strace works", only_on="linux")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(Path(tmp_path_factory.mktemp("faults")))


@pytest.fixture(scope="module")
def quiet(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = Path(tmp_path_factory.mktemp("quiet")) / "vectors"
    return hashes(embedded_again(case, out))


def embed(case: Case, out: Path, workers: int = 1) -> list[str]:
    """The words after `polyseme`; one worker is this process itself."""
    places = ["embed", "--model", str(case.model), str(case.corpus.folder), "--out", str(out)]
    return [*places, "--layers", "top", "--pca", "4", "--workers", str(workers)]


def embedded_again(case: Case, out: Path) -> Path:
    """The same command, undisturbed, in this process."""
    case.embed(out, layers="top", pca=4)
    return out


def torn(out: Path, quiet: dict[str, str]) -> set[str]:
    """What stands under a final name and is not, byte for byte, as in the quiet run."""
    return {name for name, found in finished(out).items() if quiet.get(name) != found}


def points_of_embedding(case: Case, folder: Path) -> list[Point]:
    out = folder / "listed"
    command = python("reliability.command_traced", *embed(case, out))
    points = list_points(command, folder / "log", out)
    return [point for point in points if TIDYING not in point.text]


@needs_strace
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("fault", "number"),
    [("ENOSPC", 1), *(pytest.param(fault, 10**6, marks=pytest.mark.slow) for fault in FAULTS)],
)
def test_a_fault_of_the_disk_at_any_call_is_told_and_loses_no_vector(
    tmp_path: Path, case: Case, quiet: dict[str, str], fault: str, number: int
) -> None:
    points = [p for p in points_of_embedding(case, tmp_path) if p.call in FAULTS[fault]]
    assert len(points) > 20
    codes: Counter[int] = Counter()
    for i, point in enumerate(sample(points, number)):
        out = tmp_path / f"out-{i}"
        failed = run_with(
            python("reliability.command_traced", *embed(case, out)), point, f"error={fault}"
        )
        codes[failed.returncode] += 1
        said = " ".join(failed.stderr.split())
        assert failed.returncode == 0 or "run the same command again" in said, (point, said)
        assert "Traceback" not in failed.stderr, point
        assert torn(out, quiet) == set(), point
        assert hashes(embedded_again(case, out)) == quiet, point
    print(f"{fault}: exit codes {dict(codes)} at {codes.total()} calls")
    assert_nearly_all(codes, 74)


SIZES = [(8, 1), (16, 1), (48, 1), (64, 1), (16, 2), (32, 2), (48, 2)]


@pytest.mark.parametrize(
    ("kilobytes", "workers"),
    [(32, 1), *(pytest.param(*size, marks=pytest.mark.slow) for size in SIZES)],
)
def test_a_full_disk_is_told_and_embedding_goes_on_when_there_is_room(
    small_disk: Path, case: Case, quiet: dict[str, str], kilobytes: int, workers: int
) -> None:
    resize(small_disk, f"{kilobytes}k")
    out = small_disk / "vectors"
    command = python("polyseme", *embed(case, out, workers))
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 74, failed.stderr
    assert "No space left on device" in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr
    assert torn(out, quiet) == set()
    resize(small_disk, "8m")
    assert hashes(embedded_again(case, out)) == quiet


def test_the_check_sees_a_file_of_which_the_end_is_missing(
    tmp_path: Path, case: Case, quiet: dict[str, str]
) -> None:
    out = embedded_again(case, tmp_path / "vectors")
    assert torn(out, quiet) == set()
    path = next(out.rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])
    assert torn(out, quiet) == {path.relative_to(out).as_posix()}
