"""The loop as a whole: what it learns, keeps, measures, and how it goes on.

A run asked to stop: nothing is lost, and it says so by its exit code.
"""

import json
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from listening import Heard

from polyseme.errors import ConfigError, TrainingError, TrainingStoppedError
from polyseme.training import step
from polyseme.training.checkpoint import Checkpoint, Checkpoints, Outcome
from polyseme.training.loop import stop_signals, train
from polyseme.training.optimizer import Position, learning_rate_at
from polyseme.training.processes import DistributedContext
from training.toy import Toy, ToyBatch, digests, make_batch, saved_digests, settings
from training.toy_run import TESTS, SlowToy, command

STEPS = 20


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    text = (folder / "run.jsonl").read_text()
    return [line for line in map(json.loads, text.splitlines()) if kind in line]


def losses(folder: Path) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in lines(folder, "loss")]


def checkpoint_steps(folder: Path) -> list[int]:
    return Checkpoints(folder, keep=1).steps()


class CutError(Exception):
    """Stands in for a crash."""


def train_until(crash: int, folder: Path, toy: Toy, *, steps: int = STEPS, **others: Any) -> None:
    """A run that ends without farewell once so many steps are done and saved."""
    save = Checkpoints.save

    def save_and_crash(self: Checkpoints, what: Checkpoint, **options: Any) -> None:
        save(self, what, **options)
        if what.state["step"] >= crash:
            raise CutError

    config = settings(steps, save_steps=crash, **others)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_crash)
        with pytest.raises(CutError):
            train(toy, config, folder)


def run_with_cuts(folder: Path, cuts: list[int], **others: Any) -> Toy:
    """A run that crashes at each of the steps."""
    for cut in cuts:
        train_until(cut, folder, Toy(), **others)
    toy = Toy()
    train(toy, settings(STEPS, **others), folder)
    return toy


def without_time(folder: Path) -> list[dict[str, Any]]:
    """Step and measure lines, apart from what a clock told."""
    timed = {"seconds", "words_per_second"}
    return [
        {key: value for key, value in line.items() if key not in timed}
        for line in lines(folder, "step")
        if "event" not in line
    ]


@pytest.mark.parametrize("cuts", [[1], [7], [19], [3, 8, 14], [20]])
@pytest.mark.parametrize(
    "others", [{}, {"precision": "bfloat16", "gradient_accumulation_steps": 2}]
)
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(
    tmp_path: Path, cuts: list[int], others: dict[str, Any]
) -> None:
    toy = Toy()
    train(toy, settings(STEPS, **others), tmp_path / "whole")
    cut = run_with_cuts(tmp_path / "cut", cuts, **others)
    assert digests(cut.module) == digests(toy.module)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert len(losses(tmp_path / "cut")) == STEPS
    assert without_time(tmp_path / "cut") == without_time(tmp_path / "whole")
    assert saved_digests(tmp_path / "cut", STEPS) == saved_digests(tmp_path / "whole", STEPS)


def test_the_comparison_sees_chance_that_does_not_grow_from_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "_seed", lambda *_: None)
    toy = Toy()
    train(toy, settings(STEPS), tmp_path / "whole")
    cut = run_with_cuts(tmp_path / "cut", [7])
    assert losses(tmp_path / "cut")[7:] != losses(tmp_path / "whole")[7:]
    assert digests(cut.module) != digests(toy.module)


def test_the_comparison_sees_an_optimizer_that_has_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyseme.training.checkpoint.restore_optimizer_state", lambda *_: None)
    toy = Toy()
    train(toy, settings(STEPS), tmp_path / "whole")
    cut = run_with_cuts(tmp_path / "cut", [7])
    assert digests(cut.module) != digests(toy.module)


def test_a_run_that_goes_on_reads_each_batch_once_and_tells_only_what_changed(
    tmp_path: Path,
) -> None:
    train_until(5, tmp_path / "a", Toy())
    train_until(5, tmp_path / "b", Toy())
    heard, toy = Heard(), Toy()
    train(toy, settings(STEPS), tmp_path / "a", progress=heard)
    assert heard.said == ["Resuming after step 5."]
    assert toy.seen == list(range(5, STEPS))
    [event] = lines(tmp_path / "a", "event")
    assert "changed" not in event
    heard = Heard()
    torch.set_num_threads(2)
    train(Toy(), settings(STEPS), tmp_path / "b", progress=heard)
    assert "threads 1, now 2" in heard.said[0]


class Moved(Toy):
    """The same run on another machine."""

    def environment(self, *, device: str, precision: str) -> dict[str, Any]:
        told = super().environment(device=device, precision=precision)
        return {**told, "torch": "9.9", "kernel": "avx512 steps, 0123"}


def test_a_run_that_goes_on_where_things_have_changed_says_what_and_logs_it(tmp_path: Path) -> None:
    train_until(5, tmp_path, Toy())
    heard = Heard()
    train(Moved(), settings(STEPS), tmp_path, progress=heard)
    changes = f"torch {torch.__version__}, now 9.9; kernel not recorded, now avx512 steps, 0123."
    assert heard.said == [
        f"Resuming after step 5. The last bits may differ from the previous session: {changes}"
    ]
    [event] = lines(tmp_path, "event")
    assert (event["event"], event["message"]) == ("resumed", heard.said[0])
    assert event["changed"] == {
        "torch": [torch.__version__, "9.9"],
        "kernel": ["not recorded", "avx512 steps, 0123"],
    }


def test_a_finished_run_is_not_trained_further(tmp_path: Path) -> None:
    first, again = Toy(), Toy()
    before = train(first, settings(STEPS), tmp_path)
    after = train(again, settings(STEPS), tmp_path)
    assert (after.steps, after.words, after.measures) == (STEPS, STEPS * 12, before.measures)
    assert again.seen == []
    assert digests(again.module) == digests(first.module)


def test_a_run_can_be_made_longer_and_then_has_the_longer_schedule(tmp_path: Path) -> None:
    train_until(5, tmp_path, Toy())
    heard = Heard()
    outcome = train(Toy(), settings(30), tmp_path, progress=heard)
    assert outcome.steps == 30
    assert f"has 30 steps instead of {STEPS}" in heard.said[0]
    rates = [line["learning_rate"] for line in lines(tmp_path, "loss")]
    as_planned = [learning_rate_at(number, settings(STEPS)) for number in range(5)]
    assert rates == as_planned + [learning_rate_at(n, settings(30)) for n in range(5, 30)]
    # From then on it is a run of that length: nothing is told, and nothing repeated.
    heard = Heard()
    train(Toy(), settings(30), tmp_path, progress=heard)
    assert heard.said == ["Resuming after step 30."]


def test_a_run_made_longer_equals_one_that_was_never_shorter(tmp_path: Path) -> None:
    constant = {"decay": "none", "warmup_ratio": 0.0}  # a rate that does not know the length
    train(Toy(), settings(12, **constant), tmp_path / "longer")
    longer, whole = Toy(), Toy()
    train(longer, settings(STEPS, **constant), tmp_path / "longer")
    train(whole, settings(STEPS, **constant), tmp_path / "whole")
    assert digests(longer.module) == digests(whole.module)
    assert losses(tmp_path / "longer") == losses(tmp_path / "whole")


def test_a_run_can_be_made_shorter_but_not_than_it_is(tmp_path: Path) -> None:
    train_until(5, tmp_path, Toy())
    with pytest.raises(ConfigError, match="already done 5 steps, and 4 are asked for"):
        train(Toy(), settings(4), tmp_path)
    toy = Toy()
    assert train(toy, settings(5), tmp_path).steps == 5
    assert toy.seen == []


@pytest.mark.parametrize(
    ("measures", "expected"),
    [([3.0, math.nan, math.nan, 1.0], (15, 5)), ([math.nan, 3.0, 4.0, 5.0], (20, 10))],
)
def test_a_measure_that_is_not_a_number_is_no_improvement_and_never_the_best(
    tmp_path: Path, measures: list[float], expected: tuple[int, int]
) -> None:
    _, outcome = run_watching(tmp_path, measures)
    assert (outcome.steps, outcome.best_step) == expected


@pytest.mark.parametrize("restart", [0, 12])
def test_many_bad_batches_in_a_row_end_the_run_also_over_a_restart(
    tmp_path: Path, restart: int
) -> None:
    poison = tuple(range(2, 40))
    if restart:
        train_until(restart, tmp_path, Toy(poison=poison), steps=60, on_nonfinite="skip")
    toy = Toy(poison=poison)
    with pytest.raises(TrainingError, match="20 steps in a row"):
        train(toy, settings(60, on_nonfinite="skip"), tmp_path)
    assert toy.seen[-1] == 21


def test_time_alone_makes_a_checkpoint_due_and_a_run_learns(tmp_path: Path) -> None:
    train(Toy(), settings(4, save_minutes=1e-9, keep_checkpoints=9), tmp_path / "saved")
    assert checkpoint_steps(tmp_path / "saved") == [1, 2, 3, 4]
    outcome = train(Toy(dropout=0.0), settings(300), tmp_path / "run")
    first = lines(tmp_path / "run", "measures")[0]["measures"]
    assert outcome.measures["sum"] < 0.1 * first["sum"]


def test_the_loss_is_the_mean_over_the_whole_batch(tmp_path: Path) -> None:
    toy = Toy(dropout=0.0)
    batch = make_batch(0)
    with torch.no_grad():
        out = toy.net.heads(toy.net.hidden(batch.rows).tanh())
    error = (out[:, 0] - batch.rows.sum(dim=1)).square().mean()
    sign = torch.log1p(torch.exp(-out[:, 1] * batch.sums.sign()))[::2].mean()
    train(toy, settings(1), tmp_path)
    [line] = lines(tmp_path, "loss")
    assert line["loss"] == pytest.approx(float(error + sign), rel=1e-6)
    assert line["parts"] == pytest.approx({"sum": float(error), "sign": float(sign)}, rel=1e-6)


def test_micro_batches_change_nothing_but_rounding(tmp_path: Path) -> None:
    toys = {}
    for parts in (1, 2, 3):
        toys[parts] = Toy(dropout=0.0)
        train(
            toys[parts], settings(STEPS, gradient_accumulation_steps=parts), tmp_path / str(parts)
        )
    for parts in (2, 3):
        for mine, whole in zip(
            toys[parts].module.parameters(), toys[1].module.parameters(), strict=True
        ):
            assert torch.allclose(mine, whole, atol=1e-5)


def test_a_long_gradient_is_scaled_to_the_norm_allowed(tmp_path: Path) -> None:
    stepper = step.Stepper(
        Toy(dropout=0.0).module, settings(max_grad_norm=0.5), DistributedContext(0, 1, "cpu")
    )
    measured = stepper.forward_backward(make_batch(0), step=0, wants_stop=False)
    assert measured.gradient_norm > 0.5
    grads = [p.grad.clone() for p in stepper._trained if p.grad is not None]
    before = torch.cat([grad.flatten() for grad in grads]).norm()
    assert measured.gradient_norm == pytest.approx(float(before), rel=1e-5)
    stepper.optimizer_step(measured.gradient_norm, 0.0)
    after = torch.cat([p.grad.flatten() for p in stepper._trained if p.grad is not None]).norm()
    assert float(after) == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_just_so_many_checkpoints_are_kept(tmp_path: Path, keep: int) -> None:
    train(Toy(), settings(STEPS, save_steps=3, keep_checkpoints=keep), tmp_path)
    assert checkpoint_steps(tmp_path) == [3, 6, 9, 12, 15, 18, 20][-keep:]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"checkpoints", "run.jsonl"}


def run_watching(folder: Path, measures: list[float], **others: Any) -> tuple[Toy, Outcome]:
    toy = Toy()
    toy.measures = list(measures)
    config = settings(50, evaluate_every=5, **{"patience": 2, "keep_checkpoints": 1, **others})
    return toy, train(toy, config, folder)


def test_a_run_without_improvement_stops_early_with_its_best_weights(tmp_path: Path) -> None:
    toy, outcome = run_watching(tmp_path, [3.0, 1.0, 2.0, 1.5, 0.1])
    assert (outcome.steps, outcome.best_step, outcome.stopped_early) == (20, 10, True)
    assert checkpoint_steps(tmp_path) == [10, 20]
    ten = {k.removeprefix("weights:"): v for k, v in saved_digests(tmp_path, 10).items()}
    assert digests(toy.module).items() <= ten.items()
    again, outcome = run_watching(tmp_path, [0.0])
    assert (outcome.steps, outcome.stopped_early, again.seen) == (20, True, [])
    assert digests(again.module) == digests(toy.module)


def test_a_run_with_nothing_left_to_improve_ends_with_patience_and_not_without(
    tmp_path: Path,
) -> None:
    _, outcome = run_watching(tmp_path / "with", [3.0, 0.0])
    assert (outcome.steps, outcome.best_step) == (10, 10)
    _, outcome = run_watching(tmp_path / "without", [3.0, 0.0], patience=None)
    assert outcome.steps == 50


def test_a_damaged_best_checkpoint_is_told_and_the_last_weights_stay(tmp_path: Path) -> None:
    toy, _ = run_watching(tmp_path, [3.0, 1.0, 2.0, 1.5])
    weights = tmp_path / "checkpoints" / "step-000000010" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    again, outcome = run_watching(tmp_path, [])
    assert outcome.refused == 1
    assert digests(again.module) != digests(toy.module)


@pytest.mark.parametrize(
    ("toy", "others", "named"),
    [
        (Toy(width=17), {}, "net.width was 16 and is now 17"),
        (Toy(), {"learning_rate": 0.02}, "learning_rate was 0.01 and is now 0.02"),
        (Toy(), {"seed": 2}, "seed was 1 and is now 2"),
    ],
)
def test_another_run_in_the_same_folder_is_refused_by_name(
    tmp_path: Path, toy: Toy, others: dict[str, Any], named: str
) -> None:
    train(Toy(), settings(STEPS), tmp_path)
    with pytest.raises(ConfigError, match=named):
        train(toy, settings(STEPS, **others), tmp_path)
    assert checkpoint_steps(tmp_path) == [STEPS]


def test_what_changes_no_numbers_may_change_between_sessions(tmp_path: Path) -> None:
    train(Toy(), settings(STEPS), tmp_path)
    outcome = train(
        Toy(),
        settings(STEPS, gradient_accumulation_steps=2, keep_checkpoints=5, save_steps=1),
        tmp_path,
    )
    assert outcome.steps == STEPS


@pytest.mark.parametrize("bad", [0, 4])
def test_a_poisoned_batch_leaves_the_parameters_as_they_were(tmp_path: Path, bad: int) -> None:
    before = Toy()
    if bad:
        train_until(bad, tmp_path / "before", before)
    toy = Toy(poison=(bad,))
    with pytest.raises(TrainingError, match=f"before step {bad + 1}: the loss is nan"):
        train(toy, settings(STEPS), tmp_path / "run")
    assert digests(toy.module) == digests(before.module)
    assert checkpoint_steps(tmp_path / "run") == [bad]
    if bad:
        assert saved_digests(tmp_path / "run", bad) == saved_digests(tmp_path / "before", bad)


def test_a_run_stopped_by_a_batch_goes_on_without_it_when_told_to(tmp_path: Path) -> None:
    with pytest.raises(TrainingError):
        train(Toy(poison=(4,)), settings(STEPS), tmp_path / "stopped")
    toy, skipping = Toy(poison=(4,)), Toy(poison=(4,))
    outcome = train(toy, settings(STEPS, on_nonfinite="skip"), tmp_path / "stopped")
    train(skipping, settings(STEPS, on_nonfinite="skip"), tmp_path / "skipping")
    assert (outcome.steps, outcome.skipped) == (STEPS, 1)
    assert digests(toy.module) == digests(skipping.module)
    [event] = [one for one in lines(tmp_path / "stopped", "event") if one["event"] == "skipped"]
    assert event["step"] == 4


def test_a_skipped_step_changes_neither_parameters_nor_moments(tmp_path: Path) -> None:
    config = settings(6, save_steps=1, keep_checkpoints=9, on_nonfinite="skip")
    assert train(Toy(poison=(3,)), config, tmp_path).skipped == 1
    before, after, later = (saved_digests(tmp_path, number) for number in (3, 4, 5))
    assert before == after
    assert all(before[name] != later[name] for name in before)


class Spiking(Toy):
    """One batch, after the guard's window is full, is a thousand times as large."""

    spike = 135

    def batches(self, position: Position) -> Iterator[tuple[ToyBatch, Position]]:
        for batch, after in super().batches(position):
            size = 1000.0 if after["batch"] == self.spike else 1.0
            yield replace(batch, rows=size * batch.rows, sums=size * batch.sums), after


def test_a_resumed_run_still_sees_a_spike(tmp_path: Path) -> None:
    """The guard's 128 losses come back with the checkpoint, or it would be blind at first."""
    told = f"before step {Spiking.spike}: the loss spiked"
    with pytest.raises(TrainingError, match=told):
        train(Spiking(), settings(140), tmp_path / "whole")
    train_until(130, tmp_path / "cut", Spiking(), steps=140)
    with pytest.raises(TrainingError, match=told):
        train(Spiking(), settings(140), tmp_path / "cut")


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    class Meddler(Toy):
        def evaluate(self) -> dict[str, float]:
            code = "from training.toy_run import main; import sys; "
            code += f"sys.exit(main({str(tmp_path)!r}, '{{\"steps\": 3}}'))"
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=Path(__file__).parents[1],
                capture_output=True,
                text=True,
                check=False,
            )
            assert "Another run is writing" in done.stderr
            return {"code": float(done.returncode)}

    assert train(Meddler(), settings(3), tmp_path).measures == {"code": 75.0}


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
