"""Whatever call of a commit is the last one, or fails: files are absent or complete."""

import multiprocessing
import subprocess
from collections import Counter
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from executors.jobs import FileShard, capitals_job, hashes, make_inputs
from required import needs

from polyseme.errors import StorageError
from polyseme.executors import commit_shard
from polyseme.storage.files import disk_faults_explained
from polyseme.text import word_counts
from polyseme.text.shards import ShardWriter
from polyseme.text.word_counts import count_words
from reliability import traced
from reliability.killing import make_documents, prepare
from reliability.one_shard import commit_one_shard
from reliability.small_disk import resize
from reliability.traced import Point, list_points, python, run_with, sample

RUN = "a-run"
needs_strace = needs(traced.why_not() is None, traced.why_not() or "strace works", only_on="linux")
QUICK = 16  # points
EVERY = pytest.param(10**6, marks=pytest.mark.slow)


def finished(out: Path) -> dict[str, str]:
    """Files under final names."""
    return {
        name: found
        for name, found in hashes(out).items()
        if not name.startswith(".work/") and name != ".lock"
    }


def assert_absent_or_complete(out: Path, reference: dict[str, str], point: Point) -> None:
    wrong = {name for name, found in finished(out).items() if reference.get(name) != found}
    assert wrong == set(), point


# --- two at once -------------------------------------------------------------------------


def commit_all(
    start: Barrier, shards: Sequence[FileShard], out: Path
) -> None:  # in a process of its own
    for shard in shards:
        start.wait()
        commit_shard(capitals_job(), shard, out, RUN)


@pytest.mark.parametrize("races", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_two_attempts_at_one_shard_leave_one_shard(tmp_path: Path, races: int) -> None:
    shards, out = make_inputs(tmp_path / "in", races), tmp_path / "out"
    (out / ".work" / RUN).mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    racers = [context.Process(target=commit_all, args=(start, shards, out)) for _ in range(2)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [racer.exitcode for racer in racers] == [0, 0]
    (tmp_path / "alone" / ".work" / RUN).mkdir(parents=True)
    for shard in shards:
        commit_shard(capitals_job(), shard, tmp_path / "alone", RUN)
    assert hashes(out) == hashes(tmp_path / "alone")
    assert len(hashes(out / "upper")) == races
    assert list((out / ".work" / RUN).iterdir()) == []


# --- the last call -----------------------------------------------------------------------


def kill_at_points(folder: Path, number: int, manner: str) -> list[Point]:
    """Points after which something half-done is visible; a second run must mend even that."""
    inputs, quiet = folder / "in", folder / "quiet"
    listing = python("reliability.one_shard", inputs, quiet, manner)
    points = list_points(listing, folder / "log", quiet)
    reference = hashes(quiet)
    assert len(points) > 30
    torn = []
    for i, point in enumerate(sample(points, number)):
        out = folder / f"out-{i}"
        command = python("reliability.one_shard", inputs, out, manner)
        assert run_with(command, point, "signal=KILL").returncode == -9, point
        if any(reference.get(name) != found for name, found in finished(out).items()):
            torn.append(point)
        commit_one_shard(inputs, out)
        assert hashes(out) == reference, point
    return torn


@needs_strace
@pytest.mark.parametrize("number", [QUICK, EVERY])
def test_a_shard_is_absent_or_complete_whatever_call_was_the_last(
    tmp_path: Path, number: int
) -> None:
    assert kill_at_points(tmp_path, number, "careful") == []


@needs_strace
@pytest.mark.parametrize("number", [QUICK, EVERY])
def test_the_check_sees_files_that_are_written_in_place(tmp_path: Path, number: int) -> None:
    assert kill_at_points(tmp_path, number, "careless") != []


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    make_documents(path, 150)
    return path


def prepare_words(texts: Path, out: Path) -> list[str]:
    """Arguments of a prepare of a few shards in this one process."""
    command = prepare(texts, out, "--segmenter", "whitespace", "--workers", "1")
    command[command.index("--shard-bytes") + 1] = "30000"
    return command[3:]


def prepare_again(texts: Path, out: Path) -> None:
    subprocess.run(python("polyseme", *prepare_words(texts, out)), check=True, capture_output=True)


@pytest.fixture(scope="module")
def quiet(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("quiet") / "corpus"
    prepare_again(texts, out)
    return hashes(out)


def points_of_prepare(texts: Path, folder: Path) -> list[Point]:
    out = folder / "listed"
    command = python("reliability.command_traced", *prepare_words(texts, out))
    return list_points(command, folder / "log", out)


@needs_strace
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", [8, EVERY])
def test_a_corpus_is_absent_or_complete_whatever_call_was_the_last(
    tmp_path: Path, texts: Path, quiet: dict[str, str], number: int
) -> None:
    points = sample(points_of_prepare(texts, tmp_path), number)
    codes: Counter[int] = Counter()
    for i, point in enumerate(points):
        out = tmp_path / f"out-{i}"
        command = python("reliability.command_traced", *prepare_words(texts, out))
        codes[run_with(command, point, "signal=KILL").returncode] += 1
        assert_absent_or_complete(out, quiet, point)
        prepare_again(texts, out)
        assert hashes(out) == quiet, point
        assert not (out / ".work").exists(), point
    # DuckDB's threads share out their calls again each time, so a few of the last points may
    # never come; then the run ends as usual.
    assert codes.keys() <= {-9, 0}
    assert codes[0] <= len(points) // 10


# --- a full or failing disk --------------------------------------------------------------

# What a full disk refuses, and what a failing one does.
FAULTS = {
    "ENOSPC": {"write", "pwrite64", "writev", "mkdir", "ftruncate"},
    "EIO": {"write", "pwrite64", "writev", "fsync", "rename"},
}
# Taking away what earlier runs left: if that fails, nothing is lost and nobody need be told.
TIDYING = "/over-"


@needs_strace
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", [4, EVERY])
def test_a_fault_of_the_disk_at_any_call_is_told_and_loses_nothing(
    tmp_path: Path, texts: Path, quiet: dict[str, str], fault: str, number: int
) -> None:
    points = [p for p in points_of_prepare(texts, tmp_path) if p.call in FAULTS[fault]]
    points = [p for p in points if TIDYING not in p.text]
    assert len(points) > 10
    for i, point in enumerate(sample(points, number)):
        out = tmp_path / f"out-{i}"
        command = python("reliability.command_traced", *prepare_words(texts, out))
        failed = run_with(command, point, f"error={fault}")
        assert failed.returncode == 74, (point, failed.stderr)
        assert "run the same command again" in " ".join(failed.stderr.split()), point
        assert "Traceback" not in failed.stderr, point
        assert_absent_or_complete(out, quiet, point)
        prepare_again(texts, out)
        assert hashes(out) == quiet, point


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kilobytes", [16, 48, 64, 96])
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(
    small_disk: Path, texts: Path, quiet: dict[str, str], workers: int, kilobytes: int
) -> None:
    resize(small_disk, f"{kilobytes}k")
    out = small_disk / "corpus"
    command = python("polyseme", *prepare_words(texts, out))
    command[command.index("--workers") + 1] = str(workers)
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 74, failed.stderr
    assert "No space left on device" in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr
    wrong = {name for name, found in finished(out).items() if quiet.get(name) != found}
    assert wrong == set()
    resize(small_disk, "8m")
    subprocess.run(command, capture_output=True, check=True)
    assert hashes(out) == quiet


def test_a_disk_that_duckdb_finds_full_is_told_in_words(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It has no error numbers, only words, and calls a full disk a lack of memory.
    monkeypatch.setattr(word_counts, "_MEMORY", "40MB")
    shard = tmp_path / "shard.parquet"
    with ShardWriter(shard, ()) as writer:
        for i in range(100_000):
            words = [f"quite-a-long-word-{i}-{k}-{'x' * 10}" for k in range(8)]
            writer.add((f"document:{i}:0", "document", i, False, "text", words, [0] * 8))
    with pytest.raises(StorageError, match="No space left"), disk_faults_explained(small_disk):
        count_words([shard], small_disk / "words", threads=1)
    assert not (small_disk / "words").exists()
