"""The real `polyseme pretrain`, killed at random and at each call of a save (T1).

Compared are all tensors of the newest checkpoint, the optimizer's too, the model's file, and every
loss to the last bit.
"""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import psutil
import pytest
from pretraining.making import rule_corpus
from required import needs
from training.toy import saved_digests

from polyseme.storage.files import sha256_of
from polyseme.text.corpus import Corpus
from polyseme.training import checkpoint
from polyseme.training.checkpoint import Checkpoints
from reliability import traced
from reliability.test_training import (
    assert_nearly_all,
    assert_only_whole_checkpoints,
    exact_losses,
    newest,
)
from reliability.traced import Point, list_points, python, run_with

needs_strace = needs(traced.why_not() is None, traced.why_not() or "strace works", only_on="linux")
SECONDS_TO_BE_READY = 10.0  # of processor time
INTERVAL = 5  # steps between saves
QUICK_STEPS = 90
Result = tuple[dict[str, str], list[str], str]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return rule_corpus(Path(tmp_path_factory.mktemp("kills")))


@pytest.fixture(scope="module")
def quiet(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Result]:
    """What a run of so many steps ends with that nothing disturbs."""

    @lru_cache
    def run(steps: int) -> Result:
        return finished(pretrain(corpus, Path(tmp_path_factory.mktemp("quiet")) / "m", steps))

    return run


def pretrain(corpus: Corpus, out: Path, steps: int, *, save_steps: int = INTERVAL) -> list[str]:
    """The words after `polyseme`: a small ELMo with dropout."""
    return [
        *("pretrain", str(corpus.folder), "--preset", "elmo-teaching", "--out", str(out)),
        "--keep-training-state",
        *(
            "--set",
            "model.encoder.contextualizer.proj_size=16",
            "--set",
            "model.vocabulary.min_count=1",
        ),
        *("--set", "batches.words=300", "--precision", "float32", "--evaluate-every", "50"),
        *("--steps", str(steps), "--save-steps", str(save_steps), "--keep-checkpoints", "1"),
    ]


def polyseme(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "polyseme", *words], capture_output=True, text=True, check=False
    )


def finished(words: list[str]) -> Result:
    """What a run ends with, begun here or gone on with."""
    done = polyseme(words)
    assert done.returncode == 0, done.stderr
    return result_in(Path(words[words.index("--out") + 1]))


def result_in(out: Path) -> Result:
    assert not (out / ".work").exists()
    model = sha256_of(out / "model.safetensors")
    return saved_digests(out, newest(out)), exact_losses(out), model


def kill_after(words: list[str], goal: int, wait: float) -> None:
    """Start the command, and kill it once it has saved so many steps, and a little later.

    A run that goes on must have saved something new before `SECONDS_TO_BE_READY` are used up.
    """
    out = Path(words[words.index("--out") + 1])
    before = newest(out)
    process = psutil.Popen([sys.executable, "-m", "polyseme", *words], stdout=subprocess.DEVNULL)
    while (reached := newest(out)) < goal:
        assert process.poll() is None
        if reached == before > 0:
            assert sum(process.cpu_times()[:2]) < SECONDS_TO_BE_READY
        time.sleep(0.002)
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_pretraining_killed_at_random_ends_with_the_same_bits(
    tmp_path: Path, corpus: Corpus, quiet: Callable[[int], Result], kills: int
) -> None:
    steps = QUICK_STEPS + 40 * (kills - 1)
    out = tmp_path / "run"
    words = pretrain(corpus, out, steps)
    choose, before = random.Random(5), 0
    for _ in range(kills):
        goal = before + choose.randrange(INTERVAL, 30)
        kill_after(words, goal, choose.uniform(0, 0.1))
        before = assert_only_whole_checkpoints(out)
        # Lines are written before a checkpoint, so no saved step is without its line.
        assert len(exact_losses(out)) >= before >= goal
    assert finished(words) == quiet(steps)


def points_of_a_save(corpus: Corpus, folder: Path) -> list[Point]:
    """All calls that make or retire a checkpoint, in a run that saves three times."""
    command = python("reliability.command_traced", *pretrain(corpus, folder, 3, save_steps=1))
    points = list_points(command, folder.parent / "log", folder)
    # A checkpoint is written in a scratch folder, and moved from there.
    points = [point for point in points if "checkpoint" in point.text or ".work" in point.text]
    assert {"write", "fsync", "rename", "mkdir"} <= {point.call for point in points}
    assert len(points) > 60
    return points


@needs_strace
@pytest.mark.slow  # the same is done with the loop alone in every check
@pytest.mark.timeout(7200)
def test_pretraining_killed_at_any_call_of_a_save_ends_with_the_same_bits(
    tmp_path: Path, corpus: Corpus
) -> None:
    points = points_of_a_save(corpus, tmp_path / "quiet")
    expected = result_in(tmp_path / "quiet")
    codes: Counter[int] = Counter()
    for i, point in enumerate(points):
        words = pretrain(corpus, tmp_path / f"out-{i}", 3, save_steps=1)
        killed = run_with(python("reliability.command_traced", *words), point, "signal=KILL")
        codes[killed.returncode] += 1
        assert_only_whole_checkpoints(tmp_path / f"out-{i}")
        assert finished(words) == expected, point
    assert_nearly_all(codes, -9)


@pytest.mark.slow
def test_the_comparison_sees_a_run_that_reads_its_text_anew(
    tmp_path: Path, corpus: Corpus, quiet: Callable[[int], Result]
) -> None:
    out = tmp_path / "run"
    words = pretrain(corpus, out, QUICK_STEPS)
    kill_after(words, 10, 0)
    place = Checkpoints(out, keep=1).path(newest(out))
    state = json.loads((place / "state.json").read_text())
    assert state["run"]["position"]
    state["run"]["position"] = {}
    (place / "state.json").write_text(json.dumps(state))
    (place / "manifest.json").write_bytes(checkpoint._describe(place))
    states, losses, model = finished(words)
    expected = quiet(QUICK_STEPS)
    assert losses[: state["step"]] == expected[1][: state["step"]]
    assert losses[state["step"] :] != expected[1][state["step"] :]
    assert (states, model) != (expected[0], expected[2])
