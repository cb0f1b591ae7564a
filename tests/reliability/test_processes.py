"""Several processes train as one: their number changes, one of them hangs or dies (T2, T8)."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pretraining.making import rule_corpus
from slack import allowed
from training.toy_run import TESTS, address_of, command

from polyseme.text.corpus import Corpus
from reliability.checkpoints import exact_losses
from reliability.traced import python

GRACE = allowed(5)  # seconds beyond the timeout
NEVER = 60.0  # minutes
Process = subprocess.Popen[str]


# --- their number changes ----------------------------------------------------------------

STEPS = 300
SHARES = 12  # of each batch, however many processes there are


def run_part(number: int, folder: Path, corpus: Corpus, *, shares: int, until: int) -> None:
    """The part of a run that so many processes do: up to a step, where a signal stops it."""
    is_last = until == STEPS
    values = {
        "steps": STEPS,
        "gradient_accumulation_steps": shares,
        "signal_at": None if is_last else until,
    }
    line = python("reliability.pretraining_run", folder, corpus.folder, json.dumps(values))
    processes = start_together(number, line)
    said = [process.communicate()[1] for process in processes]
    assert {process.returncode for process in processes} == {0 if is_last else 143}, said


def batches_read(folder: Path, rank: int) -> list[str]:
    """A line for each batch this process was given: where it stands, and a hash of its ids."""
    return (folder / f"ids-{rank}").read_text().splitlines()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return rule_corpus(Path(tmp_path_factory.mktemp("processes")))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    """A run that one process does from beginning to end."""
    folder = Path(tmp_path_factory.mktemp("alone")) / "run"
    run_part(1, folder, corpus, shares=SHARES, until=STEPS)
    return folder


def losses(folder: Path) -> list[float]:
    return [float.fromhex(line.split('"')[1]) for line in exact_losses(folder)]


def largest_difference(one: Path, other: Path) -> float:
    """Of the losses, relative."""
    return max(abs(a - b) / a for a, b in zip(losses(one), losses(other), strict=True))


@pytest.mark.slow  # 40 steps of a toy are done so in every check
def test_however_many_processes_share_a_run_it_reads_and_learns_the_same(
    tmp_path: Path, corpus: Corpus, alone: Path
) -> None:
    quarter = STEPS // 4
    for turn, number in enumerate([1, 2, 1, 3], start=1):
        run_part(number, tmp_path, corpus, shares=SHARES // number, until=turn * quarter)
    read = batches_read(alone, 0)
    assert len(read) == len(set(read)) == STEPS
    assert batches_read(tmp_path, 0) == read
    assert batches_read(tmp_path, 1) == read[quarter : 2 * quarter] + read[3 * quarter :]
    assert batches_read(tmp_path, 2) == read[3 * quarter :]
    difference = largest_difference(alone, tmp_path)
    print(f"largest relative difference of {STEPS} losses: {difference:.2g}")
    assert difference <= 1e-4


@pytest.mark.slow
def test_the_comparison_sees_other_dropout(tmp_path: Path, corpus: Corpus, alone: Path) -> None:
    """The control: with other shares, other words drop out."""
    run_part(2, tmp_path, corpus, shares=SHARES, until=STEPS)
    assert batches_read(tmp_path, 1) == batches_read(alone, 0)
    assert largest_difference(alone, tmp_path) > 1e-3


# --- one of them hangs or dies -----------------------------------------------------------


def start_together(number: int, line: list[str]) -> list[Process]:
    """The same command as so many processes, as torchrun starts them."""
    place = {**os.environ, **address_of(number)}
    return [
        subprocess.Popen(
            line,
            cwd=TESTS,
            env={**place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(number)
    ]


@contextlib.contextmanager
def two_processes(folder: Path, *, timeout_minutes: float) -> Iterator[list[Process]]:
    """A long run of two, well under way; ended with all that is left of it."""
    values: dict[str, Any] = {"steps": 10**6, "sleep": 0.005, "save_steps": 10}
    processes = start_together(2, command(folder, timeout_minutes=timeout_minutes, **values))
    try:
        wait_for_checkpoint(folder, processes[0])
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def wait_for_checkpoint(folder: Path, process: Process) -> None:
    while not list(folder.glob("checkpoints/step-*")):
        assert process.poll() is None
        time.sleep(0.01)


def seconds_until_noticed(lost: Process, other: Process, sign: int, patience: float) -> float:
    """How long after one process is stopped or killed the other ends, in words of its own."""
    lost.send_signal(sign)
    began = time.monotonic()
    _, said = other.communicate(timeout=patience)
    assert other.returncode == 70, said
    assert "One of the 2 processes" in said
    assert "newest checkpoint" in said
    assert "Traceback" not in said
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("rank", "sign"),
    [
        (1, signal.SIGSTOP),
        (0, signal.SIGKILL),
        pytest.param(0, signal.SIGSTOP, marks=pytest.mark.slow),
        pytest.param(1, signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_process_that_hangs_or_dies_is_noticed_in_time(
    tmp_path: Path, rank: int, sign: int
) -> None:
    with two_processes(tmp_path, timeout_minutes=0.05) as processes:
        lost, other = processes[rank], processes[1 - rank]
        assert seconds_until_noticed(lost, other, sign, 60) <= 3 + GRACE
        lost.send_signal(signal.SIGCONT)  # it wakes up alone, and does not stay
        _, said = lost.communicate(timeout=GRACE)
        assert lost.returncode == (70 if sign == signal.SIGSTOP else -signal.SIGKILL), said
        assert "Traceback" not in said


@pytest.mark.slow
def test_the_check_sees_a_process_that_waits_for_ever(tmp_path: Path) -> None:
    with (
        two_processes(tmp_path, timeout_minutes=NEVER) as (other, lost),
        pytest.raises(subprocess.TimeoutExpired),
    ):
        seconds_until_noticed(lost, other, signal.SIGSTOP, 3 + GRACE)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGSTOP, signal.SIGKILL])
def test_torchrun_leaves_no_process_behind(tmp_path: Path, sign: int) -> None:
    values = {"steps": 10**6, "sleep": 0.005, "save_steps": 10, "timeout_minutes": 0.05}
    runner = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    line = [*runner, *command(tmp_path / "run", **values)[1:]]
    with (tmp_path / "said").open("wb") as said:
        agent = subprocess.Popen(line, cwd=TESTS, stdout=said, stderr=said)
        while not list(tmp_path.glob("run/checkpoints/step-*")):
            assert agent.poll() is None, (tmp_path / "said").read_text()
            time.sleep(0.01)
        started = psutil.Process(agent.pid).children(recursive=True)
        workers = [child for child in started if "training.toy_run" in child.cmdline()]
        assert len(workers) == 2
        workers[1].send_signal(sign)
        # torchrun asks what is left to end, and after 30 seconds ends it.
        assert agent.wait(timeout=3 + GRACE + 30 + GRACE) != 0
    assert psutil.wait_procs(started, timeout=GRACE)[1] == []
