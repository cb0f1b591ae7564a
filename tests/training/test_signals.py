"""A run asked to stop: nothing is lost, and it says so by its exit code."""

import json
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from polyseme.errors import TrainingStoppedError
from polyseme.training.loop import train
from polyseme.training.signals import stop_signals
from training.toy import Toy, saved_digests, settings
from training.toy_run import TESTS, SlowToy, command


def steps_logged(folder: Path) -> int:
    path = folder / "run.jsonl"
    return path.read_bytes().count(b'"loss"') if path.exists() else 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_a_signal_stops_a_run_that_then_goes_on_as_if_nothing_had_been(
    tmp_path: Path, name: str
) -> None:
    line = command(tmp_path / "run", steps=60, sleep=0.02, save_minutes=1000)
    process = subprocess.Popen(line, cwd=TESTS, stderr=subprocess.PIPE, text=True)
    while steps_logged(tmp_path / "run") < 5:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    complaint = process.communicate(timeout=20)[1]
    assert process.returncode == 143, complaint
    assert f"{name} stopped training after step" in complaint
    [saved] = (tmp_path / "run" / "checkpoints").iterdir()
    lines = [json.loads(x) for x in (tmp_path / "run/run.jsonl").read_text().splitlines()]
    # No step that was done is lost.
    assert [x["step"] for x in lines if "loss" in x][-1] == int(saved.name.removeprefix("step-"))
    train(Toy(), settings(60), tmp_path / "run")
    train(Toy(), settings(60), tmp_path / "whole")
    assert saved_digests(tmp_path / "run", 60) == saved_digests(tmp_path / "whole", 60)


def test_who_listened_before_listens_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals() as request:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert request.by == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_can_train_too(tmp_path: Path) -> None:
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(train(Toy(), settings(3), tmp_path)))
    thread.start()
    thread.join()
    assert [outcome.steps for outcome in outcomes] == [3]


def test_measuring_left_undone_by_a_stop_is_made_up_for_once(tmp_path: Path) -> None:
    toy = SlowToy()
    toy.signal_at = 10
    with pytest.raises(TrainingStoppedError) as stopped:
        train(toy, settings(20, evaluate_every=5), tmp_path)
    assert stopped.value.exit_code == 143

    def measured() -> list[int]:
        lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
        return [line["step"] for line in lines if "measures" in line]

    assert measured() == [5]
    train(Toy(), settings(20, evaluate_every=5), tmp_path)
    assert measured() == [5, 10, 15, 20]
