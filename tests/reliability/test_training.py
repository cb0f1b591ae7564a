"""Training through kills, damaged files, racing saves, signals; each call: test_any_call.py."""

import json
import random
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from slack import allowed
from training import toy_run
from training.damage import DAMAGES, FILES, flip
from training.toy import Toy, settings

from polyseme.training.checkpoint import (
    Checkpoint,
    Checkpoints,
    DamagedCheckpointError,
    load_newest,
)
from polyseme.training.loop import train
from reliability.checkpoints import assert_only_whole, exact_losses, finish, newest
from reliability.forked import Forked


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def start(folder: Path, **values: Any) -> Forked:
    """A run of the toy, in a process of its own."""
    return Forked(toy_run.main, str(folder), json.dumps(values), said=folder.with_suffix(".said"))


# --- kills -------------------------------------------------------------------------------


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_loses_at_most_one_interval(tmp_path: Path, kills: int) -> None:
    values: dict[str, Any] = {"steps": 40 * kills, "save_steps": 4}
    quiet = finish(tmp_path / "quiet", **values)
    choose, before = random.Random(4), 0
    for _ in range(kills):
        process = start(tmp_path / "run", sleep=0.01, **values)
        goal = before + choose.randrange(8, 36)
        while newest(tmp_path / "run") < goal:
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(choose.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        before = assert_only_whole(tmp_path / "run")
        assert before >= goal
    assert finish(tmp_path / "run", **values) == quiet


# --- damage ------------------------------------------------------------------------------


@pytest.mark.slow
def test_none_of_a_thousand_damages_is_silent(tmp_path: Path) -> None:
    train(Toy(), settings(10, save_steps=5), tmp_path / "run")
    choose, seen = random.Random(3), 0
    for name in FILES:
        path = tmp_path / "run/checkpoints/step-000000010" / name
        sound = path.read_bytes()
        for damage in DAMAGES:
            damage(path)
            seen += falls_back(tmp_path / "run")
            path.write_bytes(sound)
        for _ in range(300):
            path.write_bytes(flip(sound, choose))
            seen += falls_back(tmp_path / "run")
        path.write_bytes(sound)
    assert seen == len(FILES) * (len(DAMAGES) + 300)
    assert not falls_back(tmp_path / "run")


def falls_back(folder: Path) -> bool:
    refused: list[int] = []
    began = time.monotonic()
    found = load_newest(folder, lambda step, _: refused.append(step))
    assert time.monotonic() - began < allowed(5)
    return found is not None and found.state["step"] == 5 and refused == [10]


def test_the_check_sees_a_damaged_checkpoint(tmp_path: Path) -> None:
    train(Toy(), settings(4), tmp_path)
    path = tmp_path / "checkpoints/step-000000004/state.json"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedCheckpointError):
        assert_only_whole(tmp_path)


# --- a save while training goes on -------------------------------------------------------


def some_state() -> dict[str, torch.Tensor]:
    """Tensors as a module can have them: in one piece, turned, tied to another, in bfloat16."""
    first = torch.randn(32, 16)
    half = torch.randn(5).bfloat16()
    return {"first": first, "turned": torch.randn(16, 32).T, "tied": first, "half": half}


def saved_as_it_was(folder: Path, save: Callable[[Checkpoint], object], step: int) -> bool:
    """Whether a checkpoint holds the bits of the moment `save` was called, when all tensors change
    as soon as it returns."""
    weights, optimizer_state = some_state(), some_state()
    before = [{name: t.clone() for name, t in part.items()} for part in (weights, optimizer_state)]
    save(Checkpoint(weights, optimizer_state, {"step": step}))
    for tensor in [*weights.values(), *optimizer_state.values()]:
        tensor.add_(1)
    deadline = time.monotonic() + 60
    while newest(folder) < step and time.monotonic() < deadline:
        time.sleep(0.001)
    found = Checkpoints(folder, keep=1).load(step)
    return all(
        torch.equal(was[name], now[name])
        for was, now in zip(before, (found.weights, found.optimizer_state), strict=True)
        for name in was
    )


def test_a_save_holds_the_moment_it_was_called_at(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=1)
    assert sum(saved_as_it_was(tmp_path, store.save, step) for step in range(1, 101)) == 100


def test_the_check_sees_a_save_that_is_still_writing_when_training_goes_on(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=1)

    def save_later(what: Checkpoint) -> None:
        threading.Timer(0.05, store.save, [what]).start()

    assert not any(saved_as_it_was(tmp_path, save_later, step) for step in range(1, 4))


# --- signals -----------------------------------------------------------------------------


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("signals", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_signals_at_random_times_lose_no_step(tmp_path: Path, signals: int) -> None:
    choose = random.Random(6)
    values: dict[str, Any] = {"steps": 10_000, "save_minutes": 1000}
    for i in range(signals):
        out = tmp_path / f"run-{i}"
        process = start(out, sleep=0.002, **values)
        while not (out / "run.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.005)
        time.sleep(choose.uniform(0, 0.3))
        first, second = choose.choices([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1], k=2)
        process.send_signal(first)
        sent = time.monotonic()
        while not (out / ".work").exists() and process.poll() is None:
            time.sleep(0.0005)
        process.send_signal(second)  # during the save
        assert process.wait(60) == 143
        assert time.monotonic() - sent < allowed(5)
        step = assert_only_whole(out)
        assert len(exact_losses(out)) == step > 0
        shutil.rmtree(out)


# --- days --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_long_run_keeps_its_memory_and_just_its_checkpoints(tmp_path: Path) -> None:
    used: list[int] = []

    class Watching(Toy):
        def evaluate(self) -> dict[str, float]:
            used.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            assert len(list((tmp_path / "checkpoints").iterdir())) <= 3
            return {}

    values: dict[str, Any] = {"save_steps": 100, "evaluate_every": 1000, "keep_checkpoints": 3}
    train(Watching(), settings(20_000, on_nonfinite="skip", **values), tmp_path)
    assert (used[-1] - used[4]) / 1024 <= 15  # MB in as many thousand steps
    assert len(list((tmp_path / "checkpoints").iterdir())) == 3
