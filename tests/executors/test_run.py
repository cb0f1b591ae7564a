""""""

import errno
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
from executors.jobs import (
    FileShard,
    calls_made,
    capitals_job,
    die,
    die_once,
    fail,
    fill_disk,
    hashes,
    make_inputs,
    name_card,
    noting_job,
    report_half_and_wait,
)

from polyseme.errors import ConfigError, ExecutorError, StorageError
from polyseme.executors import ExecutorConfig, ModelExecutorConfig, ShardJob, commit, run, run_job
from polyseme.storage.files import clear_work, hold_folder

HERE = ExecutorConfig(workers=1)


def test_progress_ends_at_the_sum_of_all_sizes_whether_found_or_made(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path / "in", 3)
    for num_found in (0, 3):
        told: list[int] = []
        job = capitals_job()
        result = run_job(job, inputs, tmp_path / "out", executor=HERE, on_progress=told.append)
        assert told[-1] == sum(shard.size for shard in inputs)
        assert result.num_found == num_found


def test_progress_within_a_shard_is_told_before_it_is_finished(tmp_path: Path) -> None:
    [shard] = make_inputs(tmp_path / "in", 1)
    told: list[int] = []
    job = ShardJob(report_half_and_wait, "settings")
    run_job(job, [shard], tmp_path / "out", executor=HERE, on_progress=told.append)
    assert shard.size // 2 in told
    assert told[-1] == shard.size


def test_a_second_run_does_only_what_is_missing(tmp_path: Path) -> None:
    inputs, calls = make_inputs(tmp_path / "in", 3), tmp_path / "calls"
    run_job(noting_job(calls), inputs[:2], tmp_path / "out", executor=HERE)
    run_job(noting_job(calls), inputs, tmp_path / "out", executor=HERE)
    assert set(calls_made(calls).values()) == {1}


def test_a_restart_reads_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, out = make_inputs(tmp_path / "in", 3), tmp_path / "out"
    first = run_job(capitals_job(), inputs, out, executor=HERE)
    with monkeypatch.context() as patch:
        patch.setattr(FileShard, "digest", lambda _: pytest.fail("input was read"))
        patch.setattr(commit, "is_as_written", lambda *_: pytest.fail("output was read"))
        again = run_job(capitals_job(), inputs, out, executor=HERE)
    assert (again.num_found, dict(again.files)) == (3, dict(first.files))
    # A copied folder has other times and inodes: then the hashes decide, once.
    shutil.copytree(out, tmp_path / "copy")
    assert run_job(capitals_job(), inputs, tmp_path / "copy", executor=HERE).num_found == 3
    monkeypatch.setattr(FileShard, "digest", lambda _: pytest.fail("input was read"))
    assert run_job(capitals_job(), inputs, tmp_path / "copy", executor=HERE).num_found == 3


def test_a_run_after_a_failure_keeps_what_was_finished(tmp_path: Path) -> None:
    inputs, out, calls = make_inputs(tmp_path / "in", 3), tmp_path / "out", tmp_path / "calls"
    with pytest.raises(ValueError, match="not to my taste"):
        run_job(ShardJob(fail, "settings"), inputs, out, executor=HERE)
    run_job(noting_job(calls), inputs, out, executor=HERE)
    assert calls_made(calls) == {"part-00001": 1, "part-00002": 1}


def test_shards_of_an_earlier_plan_are_removed(tmp_path: Path) -> None:
    inputs, out = make_inputs(tmp_path / "in", 4), tmp_path / "out"
    run_job(capitals_job(), inputs[:2], tmp_path / "reference", executor=HERE)
    run_job(capitals_job(), inputs, out, executor=HERE)
    run_job(capitals_job(), inputs[:2], out, executor=HERE)
    assert hashes(out) == hashes(tmp_path / "reference")


def test_shards_of_an_earlier_plan_are_removed_though_their_receipts_are_lost(
    tmp_path: Path,
) -> None:
    inputs, out = make_inputs(tmp_path / "in", 4), tmp_path / "out"
    run_job(capitals_job(), inputs[:2], tmp_path / "reference", executor=HERE)
    run_job(capitals_job(), inputs, out, executor=HERE)
    shutil.rmtree(out / "receipts")
    run_job(capitals_job(), inputs[:2], out, executor=HERE)
    assert hashes(out) == hashes(tmp_path / "reference")


def test_a_file_that_a_shard_has_no_more_is_removed(tmp_path: Path) -> None:
    inputs, out = make_inputs(tmp_path / "in", 2), tmp_path / "out"
    run_job(capitals_job(), inputs, tmp_path / "reference", executor=HERE)
    plain = inputs[0].path.read_text()
    inputs[0].path.write_text("odd")
    run_job(capitals_job(), inputs, out, executor=HERE)
    assert (out / "odd" / "part-00000.txt").exists()
    inputs[0].path.write_text(plain)
    run_job(capitals_job(), inputs, out, executor=HERE)
    assert hashes(out) == hashes(tmp_path / "reference")


def test_files_of_others_in_the_output_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out" / "notes").mkdir(parents=True)
    (tmp_path / "out" / "notes" / "part-00000.txt").write_text("mine")
    run_job(capitals_job(), make_inputs(tmp_path / "in", 1), tmp_path / "out", executor=HERE)
    assert (tmp_path / "out" / "notes" / "part-00000.txt").read_text() == "mine"


HOLD = """
import sys, time
from pathlib import Path
from polyseme.storage.files import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_in_a_folder_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    out, inputs = tmp_path / "out", make_inputs(tmp_path / "in", 1)
    out.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ExecutorError, match="Another run is writing"):
            run_job(capitals_job(), inputs, out, executor=HERE)
        assert hashes(out).keys() == {".lock"}
        holder.communicate(b"")
    run_job(capitals_job(), inputs, out, executor=HERE)


def test_a_run_that_was_killed_does_not_hold_its_folder(tmp_path: Path) -> None:
    out, inputs = tmp_path / "out", make_inputs(tmp_path / "in", 1)
    out.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        holder.kill()
    run_job(capitals_job(), inputs, out, executor=HERE)
    assert not (out / ".lock").exists()


def test_a_folder_may_be_held_around_a_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with hold_folder(out):
        run_job(capitals_job(), make_inputs(tmp_path / "in", 1), out, executor=HERE)
        assert (out / ".lock").exists(), "the run has let go of what its caller holds"
    assert not (out / ".lock").exists()


def test_the_lock_file_is_gone_before_the_lock_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other order lets a second run take the lock, lose its name, and a third run in.
    seen = []
    release = "filelock.FileLock.release"
    import filelock

    honest = filelock.FileLock.release

    def look_and_release(lock: filelock.FileLock, force: bool = False) -> None:
        seen.append((tmp_path / ".lock").exists())
        honest(lock, force)

    monkeypatch.setattr(release, look_and_release)
    with hold_folder(tmp_path):
        pass
    assert seen[0] is False


def test_what_earlier_runs_left_unfinished_is_removed(tmp_path: Path) -> None:
    stale = tmp_path / "out" / ".work" / "earlier" / "part-00000-x"
    stale.mkdir(parents=True)
    (stale / "half").write_text("half")
    run_job(capitals_job(), make_inputs(tmp_path / "in", 1), tmp_path / "out", executor=HERE)
    assert not (tmp_path / "out" / ".work").exists()


def test_a_survivor_loses_its_folder_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Emptied file by file, its folder would stay if the survivor filled it meanwhile.
    scratch = tmp_path / ".work" / "earlier" / "part-00000-x"
    scratch.mkdir(parents=True)
    gone: list[bool] = []
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: gone.append(not scratch.exists()))
    clear_work(tmp_path / ".work")
    assert gone == [True]


@pytest.mark.parametrize(
    ("number", "workers"),
    [(errno.ENOSPC, 1), (errno.EDQUOT, 1), (errno.EIO, 2), (errno.EROFS, 1)],
)
def test_a_full_or_failing_disk_is_told_in_words(tmp_path: Path, number: int, workers: int) -> None:
    job = ShardJob(partial(fill_disk, number), "")
    inputs, executor = make_inputs(tmp_path / "in", 2), ExecutorConfig(workers=workers)
    with pytest.raises(StorageError, match="run the same command again"):
        run_job(job, inputs, tmp_path / "out", executor=executor)


def test_other_faults_of_the_system_are_not_blamed_on_the_disk(tmp_path: Path) -> None:
    job = ShardJob(partial(fill_disk, errno.EACCES), "")
    with pytest.raises(PermissionError):
        run_job(job, make_inputs(tmp_path / "in", 1), tmp_path / "out", executor=HERE)


TWO = ExecutorConfig(workers=2)


@pytest.mark.parametrize("workers", [2, 5])
def test_the_number_of_workers_changes_nothing(tmp_path: Path, workers: int) -> None:
    inputs = make_inputs(tmp_path / "in", 4)
    one = run_job(capitals_job(), inputs, tmp_path / "one", executor=ExecutorConfig(workers=1))
    many = run_job(
        capitals_job(), inputs, tmp_path / "many", executor=ExecutorConfig(workers=workers)
    )
    assert dict(many.files) == dict(one.files)
    assert many.counts == one.counts
    assert hashes(tmp_path / "many") == hashes(tmp_path / "one")


def test_an_error_in_a_worker_arrives_as_itself(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="part-00001 is not to my taste") as caught:
        run_job(ShardJob(fail, ""), make_inputs(tmp_path / "in", 4), tmp_path / "out", executor=TWO)
    assert "in fail" in caught.value.__notes__[0], "where it happened is lost"


def test_no_worker_outlives_an_error(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(ValueError, match="taste"):
        run_job(ShardJob(fail, ""), make_inputs(tmp_path / "in", 4), tmp_path / "out", executor=TWO)
    left = set(psutil.Process().children(recursive=True)) - before
    assert [process for process in left if "resource_tracker" not in str(process.cmdline())] == []


def test_a_shard_whose_worker_dies_is_done_again(tmp_path: Path) -> None:
    inputs, traces = make_inputs(tmp_path / "in", 4), tmp_path / "traces"
    traces.mkdir()
    run_job(capitals_job(), inputs, tmp_path / "quiet", executor=TWO)
    job = ShardJob(partial(die_once, traces), "settings")
    run_job(job, inputs, tmp_path / "out", executor=TWO)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "quiet")
    assert len(hashes(traces)) == 4


def test_a_shard_that_always_ends_its_worker_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_RETRIES", 2)
    with pytest.raises(ExecutorError, match=r"part-00001 has ended its worker 2 times.*Killed"):
        run_job(ShardJob(die, ""), make_inputs(tmp_path / "in", 3), tmp_path / "out", executor=TWO)
    assert "receipts/part-00000.json" in hashes(tmp_path / "out")


SLOW = """
import sys
from functools import partial
from pathlib import Path
from executors import jobs
from polyseme.executors import ExecutorConfig, ShardJob, commit, run_job
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    inputs = jobs.make_inputs(folder / "in", 100)
    job = ShardJob(partial(jobs.capitals_slowly, 0.5), "settings", folders=("upper", "odd"))
    run_job(job, inputs, folder / "out", executor=ExecutorConfig(workers=2))
"""


def test_workers_of_a_killed_driver_end_with_the_shard_in_hand(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    with subprocess.Popen(
        [sys.executable, tmp_path / "slow.py", tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as driver:
        while len(list((tmp_path / "out" / "receipts").glob("*.json"))) < 2:
            time.sleep(0.01)
        workers = psutil.Process(driver.pid).children()
        driver.kill()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []
    assert len(hashes(tmp_path / "out" / "receipts")) < 10


def test_each_worker_does_the_work_of_its_own_card(tmp_path: Path) -> None:
    job = ShardJob(fail, "", per_worker=(partial(name_card, "0"), partial(name_card, "1")))
    inputs = make_inputs(tmp_path / "in", 6)
    run_job(job, inputs, tmp_path / "out", executor=ExecutorConfig(workers=3))
    cards = [path.read_text() for path in sorted((tmp_path / "out/cards").iterdir())]
    assert len(cards) == 6
    assert set(cards) == {"0", "1"}


def test_on_ray_gpus_are_those_of_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    config = ModelExecutorConfig(backend="ray", device="cuda")
    assert config.chosen_device() == "cuda"
    assert config.on("cuda").workers == 1
    with pytest.raises(ConfigError, match="not available here"):
        ModelExecutorConfig(device="cuda").chosen_device()
