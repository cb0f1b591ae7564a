"""Whatever call of a piece of work is the last one, or fails: files are absent or complete, and run
again it ends as if nothing had been."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import polyseme
from embedding.bulk_cases import Case, make_case
from executors.jobs import FileShard, capitals_job, hashes, make_inputs
from pretraining.making import rule_corpus
from training import toy_run

from polyseme.errors import StorageError
from polyseme.executors import commit_shard
from polyseme.storage.files import disk_faults_explained
from polyseme.text import word_counts
from polyseme.text.shards import ShardWriter
from polyseme.text.word_counts import count_words
from reliability import checkpoints
from reliability.forked import Forked, context
from reliability.forked import polyseme as polyseme_alone
from reliability.killing import make_documents, prepare
from reliability.one_shard import commit_one_shard
from reliability.small_disk import resize
from reliability.traced import (
    Point,
    Program,
    command,
    list_points,
    needs_strace,
    run_with,
    sample,
)

RUN = "a-run"
EVERY = 10**6
TIDYING = "/over-"
"""Taking away what earlier runs left: if that fails, nothing is lost and nobody need be told."""
FAULTS = {
    "ENOSPC": {"write", "pwrite64", "writev", "mkdir", "ftruncate"},
    "EIO": {"write", "pwrite64", "writev", "fsync", "rename"},
}
"""What a full disk refuses, and what a failing one does."""


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


class Work:
    """Something that writes a folder, in a process that can be killed or disturbed.

    `finish` goes on to the end and tells what the work came to; `look` asserts that all that stands
    under a final name is whole.
    """

    fewest = 30
    """So many calls there are at least, or the list of them cannot be whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.make(folder)
        self.expected = self.finish(folder / "quiet")

    def make(self, folder: Path) -> None:
        """What the work reads."""

    def program(self, out: Path) -> Program:
        raise NotImplementedError

    def finish(self, out: Path) -> Any:
        raise NotImplementedError

    def look(self, out: Path) -> None:
        assert torn(out, self.expected) == set()

    @cached_property
    def points(self) -> list[Point]:
        """Its calls that concern its folder."""
        return self.list_points()

    def list_points(self) -> list[Point]:
        listed = self.folder / "listed"
        found = list_points(self.program(listed), self.folder / "log", listed)
        assert len(found) > self.fewest
        return found


def torn(out: Path, expected: dict[str, str]) -> set[str]:
    """What stands under a final name and is not, byte for byte, as in the quiet run."""
    return {
        name
        for name, found in hashes(out).items()
        if not name.startswith(".work/") and name != ".lock" and expected.get(name) != found
    }


class Shard(Work):
    """Two files and a receipt."""

    manner = "careful"

    def program(self, out: Path) -> Program:
        return Program(commit_one_shard, (self.folder / "in", out, self.manner))

    def finish(self, out: Path) -> Any:
        commit_one_shard(self.folder / "in", out)
        return hashes(out)


class Prepare(Work):
    """A few shards."""

    def make(self, folder: Path) -> None:
        make_documents(folder / "texts.txt", 150)

    def words(self, out: Path, workers: int = 1) -> list[str]:
        more = ("--segmenter", "whitespace", "--workers", str(workers))
        return prepare(self.folder / "texts.txt", out, *more, shard_bytes=30_000)

    def program(self, out: Path) -> Program:
        return command(*self.words(out))

    def finish(self, out: Path) -> Any:
        polyseme(*self.words(out))
        assert not (out / ".work").exists()
        return hashes(out)


class Embed(Work):
    """One worker is this process itself."""

    case: Case

    def make(self, folder: Path) -> None:
        self.case = make_case(folder)

    def words(self, out: Path, workers: int = 1) -> list[str]:
        places = ["embed", "--model", str(self.case.model), str(self.case.corpus.folder)]
        settings = ["--layers", "top", "--pca", "4", "--workers", str(workers)]
        return [*places, "--out", str(out), *settings]

    def program(self, out: Path) -> Program:
        return command(*self.words(out))

    def finish(self, out: Path) -> Any:
        self.case.embed(out, layers="top", pca=4)
        return hashes(out)


class Loop(Work):
    """The training loop alone, with a toy."""

    fewest = 60

    def program(self, out: Path) -> Program:
        return Program(toy_run.main, (str(out), json.dumps(checkpoints.SHORT)))

    def finish(self, out: Path) -> Any:
        return checkpoints.finish(out, **checkpoints.SHORT)

    def look(self, out: Path) -> None:
        checkpoints.assert_only_whole(out)


class Pretrain(Work):
    """A small ELMo that is saved three times. Points are calls that make or retire a checkpoint,
    which is written in a scratch folder and moved from there."""

    fewest = 60

    def make(self, folder: Path) -> None:
        self.corpus = rule_corpus(folder / "made")

    def words(self, out: Path) -> list[str]:
        return checkpoints.pretrain(self.corpus, out, 3, save_steps=1)

    def program(self, out: Path) -> Program:
        return command(*self.words(out))

    def finish(self, out: Path) -> Any:
        polyseme(*self.words(out))
        return checkpoints.result_in(out)

    def look(self, out: Path) -> None:
        checkpoints.assert_only_whole(out)

    def list_points(self) -> list[Point]:
        found = [p for p in super().list_points() if "checkpoint" in p.text or ".work" in p.text]
        assert {"write", "fsync", "rename", "mkdir"} <= {point.call for point in found}
        assert len(found) > self.fewest
        return found


WORKS: dict[str, type[Work]] = {
    "shard": Shard, "prepare": Prepare, "embed": Embed, "loop": Loop, "pretrain": Pretrain,
}  # fmt: skip


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Work]:
    """Each made once, and done once in quiet."""
    return cache(lambda name: WORKS[name](tmp_path_factory.mktemp(name)))


def times(**quick: int) -> pytest.MarkDecorator:
    """At how many points each work is disturbed; at every one in `make reliability`."""
    every = [
        pytest.param(name, EVERY, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])
        for name in quick
    ]
    return pytest.mark.parametrize(("name", "number"), [*quick.items(), *every])


def assert_nearly_all(codes: "Counter[int]", expected: int) -> None:
    """Logs are also written by the clock, and DuckDB's threads share out their calls again each
    time, so a few of the last points may never come; then the run ends as usual."""
    assert codes.keys() <= {expected, 0}
    assert codes[0] <= codes.total() // 10


@needs_strace
@times(shard=16, prepare=8, embed=4, loop=3, pretrain=2)
def test_whatever_call_was_the_last_all_is_absent_or_complete(
    tmp_path: Path, works: Callable[[str], Work], name: str, number: int
) -> None:
    work = works(name)
    codes: Counter[int] = Counter()
    for i, point in enumerate(sample(work.points, number)):
        out = tmp_path / f"out-{i}"
        killed = run_with(work.program(out), point, "signal=KILL", tmp_path / "said")
        codes[killed.code] += 1
        work.look(out)
        assert work.finish(out) == work.expected, point
    assert_nearly_all(codes, -9)


@needs_strace
@pytest.mark.parametrize("number", [16, pytest.param(EVERY, marks=pytest.mark.slow)])
def test_the_check_sees_files_that_are_written_in_place(tmp_path: Path, number: int) -> None:
    work, seen = Shard(tmp_path), 0
    work.manner = "careless"
    for i, point in enumerate(sample(work.points, number)):
        out = tmp_path / f"out-{i}"
        assert run_with(work.program(out), point, "signal=KILL", tmp_path / "said").code == -9
        seen += bool(torn(out, work.expected))
        assert work.finish(out) == work.expected, point  # a second run mends even that
    assert seen


@needs_strace
@pytest.mark.parametrize("fault", FAULTS)
@times(prepare=4, embed=2, loop=2)
def test_a_fault_of_the_disk_at_any_call_is_told_and_loses_nothing(
    tmp_path: Path, works: Callable[[str], Work], name: str, number: int, fault: str
) -> None:
    work = works(name)
    points = [p for p in work.points if p.call in FAULTS[fault] and TIDYING not in p.text]
    assert len(points) > 10
    codes: Counter[int] = Counter()
    for i, point in enumerate(sample(points, number)):
        out = tmp_path / f"out-{i}"
        failed = run_with(work.program(out), point, f"error={fault}", tmp_path / f"said-{i}")
        codes[failed.code] += 1
        told = "run the same command again" in " ".join(failed.said.split())
        assert failed.code == 0 or told, (point, failed.said)
        assert "Traceback" not in failed.said, point
        work.look(out)
        assert work.finish(out) == work.expected, point
    print(f"{fault}: exit codes {dict(codes)} at {codes.total()} calls")
    assert name != "prepare" or codes.keys() == {74}
    assert_nearly_all(codes, 74)


# --- a disk that is full -----------------------------------------------------------------

EMBED_SIZES = [(8, 1), (16, 1), (48, 1), (64, 1), (16, 2), (32, 2), (48, 2)]
PREPARE_SIZES = [(16, 2), (64, 2), (96, 2)]


@pytest.mark.parametrize(
    ("name", "kilobytes", "workers"),
    [
        *(("prepare", size, 1) for size in (16, 48, 64, 96)),
        ("prepare", 48, 2),
        ("embed", 32, 1),
        *(pytest.param("prepare", *size, marks=pytest.mark.slow) for size in PREPARE_SIZES),
        *(pytest.param("embed", *size, marks=pytest.mark.slow) for size in EMBED_SIZES),
    ],
)
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(
    small_disk: Path,
    tmp_path: Path,
    works: Callable[[str], Work],
    name: str,
    kilobytes: int,
    workers: int,
) -> None:
    resize(small_disk, f"{kilobytes}k")
    work, out, said = works(name), small_disk / "work", tmp_path / "said"
    assert isinstance(work, Prepare | Embed)
    assert Forked(polyseme_alone, *work.words(out, workers), said=said).wait() == 74
    told = " ".join(said.read_text().split())
    assert "No space left on device" in told
    assert "Traceback" not in told
    work.look(out)
    resize(small_disk, "8m")
    polyseme(*work.words(out, workers))
    assert hashes(out) == work.expected


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
    start = context().Barrier(2)
    racers = [context().Process(target=commit_all, args=(start, shards, out)) for _ in range(2)]
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
