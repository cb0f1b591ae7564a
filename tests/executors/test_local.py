import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
from executors.jobs import (
    capitals_job,
    die,
    die_once,
    fail,
    fail_awkwardly,
    hashes,
    make_inputs,
    name_card,
)

from polyseme.errors import ExecutorError
from polyseme.executors import ExecutorConfig, ShardJob, local, run_job

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


def test_an_error_that_cannot_travel_arrives_as_its_text(tmp_path: Path) -> None:
    job = ShardJob(fail_awkwardly, "")
    with pytest.raises(ExecutorError, match=r"AwkwardError: part-0000. is awkward"):
        run_job(job, make_inputs(tmp_path / "in", 2), tmp_path / "out", executor=TWO)


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
    monkeypatch.setattr(local, "MAX_RETRIES", 2)
    with pytest.raises(ExecutorError, match=r"part-00001 has ended its worker 2 times.*Killed"):
        run_job(ShardJob(die, ""), make_inputs(tmp_path / "in", 3), tmp_path / "out", executor=TWO)
    assert "receipts/part-00000.json" in hashes(tmp_path / "out")


SLOW = """
import sys
from functools import partial
from pathlib import Path
from executors import jobs
from polyseme.executors import ExecutorConfig, ShardJob, run_job
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
