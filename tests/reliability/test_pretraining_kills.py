"""The real `polyseme pretrain`, killed at random (at each call of a save: test_any_call.py).

Compared are all tensors of the newest checkpoint, the optimizer's too, the model's file, and every
loss to the last bit.
"""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import psutil
import pytest
from command_line import polyseme
from pretraining.making import rule_corpus

from polyseme.text.corpus import Corpus
from polyseme.training import checkpoint
from polyseme.training.checkpoint import Checkpoints
from reliability.checkpoints import assert_only_whole, exact_losses, newest, pretrain, result_in

SECONDS_TO_BE_READY = 10.0  # of processor time
INTERVAL = 5  # steps between saves
QUICK_STEPS = 60
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


def finished(words: list[str]) -> Result:
    """What a run ends with, begun here or gone on with."""
    polyseme(*words)
    return result_in(Path(words[words.index("--out") + 1]))


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
        before = assert_only_whole(out)
        # Lines are written before a checkpoint, so no saved step is without its line.
        assert len(exact_losses(out)) >= before >= goal
    assert finished(words) == quiet(steps)


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
