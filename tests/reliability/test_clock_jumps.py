"""The system's clock is set a day forward and back while commands work, as by hand or by NTP.

libfaketime does it to the real commands, files' times included; what counts time on, the monotonic
clock, goes on as it does when a clock is set. Nothing may depend on which file is younger.
"""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from command_line import polyseme
from executors.jobs import hashes
from pretraining.making import rule_corpus
from required import needs

from reliability.checkpoints import newest, pretrain, result_in
from reliability.killing import make_documents, prepare
from reliability.test_index_kills import Quiet, command_of
from reliability.test_pretraining_kills import finished
from reliability.traced import python

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), Path("/no/libfaketime"))
pytestmark = [
    needs(LIBRARY.exists(), "libfaketime (package faketime)", only_on="linux"),
    pytest.mark.timeout(1800),
]
DAYS = ("+0", "+1d", "-1d", "-2d", "+2d")


class Clock:
    """What commands take for the time: so many days before or after the real one."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "offset"
        self._next = folder / "next"
        self.days = itertools.cycle(DAYS)
        self.jump()
        self.environment = {
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",  # seconds; every call would read the file otherwise
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self) -> None:
        self._next.write_text(next(self.days) + "\n")
        self._next.replace(self.file)

    def start(self, words: list[str], said: Path) -> psutil.Popen:
        with said.open("wb") as stream:
            return psutil.Popen(
                python("polyseme", *words),
                env=self.environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def run(self, words: list[str], said: Path) -> None:
        """To its end, a jump every second or so."""
        process = self.start(words, said)
        while process.poll() is None:
            time.sleep(0.5)
            self.jump()
        assert process.returncode == 0, said.read_text()
        assert "Traceback" not in said.read_text()


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    (tmp_path / "clock").mkdir()
    return Clock(tmp_path / "clock")


def test_the_clock_of_these_tests_jumps(clock: Clock) -> None:
    code = "import time; before = time.monotonic(); print(time.time(), time.monotonic() - before)"
    command, told = [sys.executable, "-c", code], []
    for _ in DAYS:
        clock.jump()
        done = subprocess.run(command, env=clock.environment, capture_output=True, check=True)
        told.append(done.stdout.split())
    assert max(float(wall) for wall, _ in told) - min(float(wall) for wall, _ in told) > 3 * 86400
    assert all(0 <= float(passed) < 60 for _, passed in told)


def test_a_corpus_is_the_same_whatever_the_clock_does(tmp_path: Path, clock: Clock) -> None:
    make_documents(tmp_path / "texts.txt", 200)
    quiet, out = tmp_path / "quiet", tmp_path / "corpus"
    polyseme(*prepare(tmp_path / "texts.txt", quiet), "--workers", "1")
    clock.run(prepare(tmp_path / "texts.txt", out, "--workers", "2"), tmp_path / "said")
    assert hashes(out) == hashes(quiet)


@pytest.mark.slow
def test_pretraining_killed_goes_on_from_the_last_step_on_a_clock_that_was_set_back(
    tmp_path: Path, clock: Clock
) -> None:
    corpus = rule_corpus(tmp_path / "corpus")
    expected = finished(pretrain(corpus, tmp_path / "quiet", 30))
    words = pretrain(corpus, tmp_path / "run", 30)
    process = clock.start(words, tmp_path / "said")
    while newest(tmp_path / "run") < 10:
        assert process.poll() is None, (tmp_path / "said").read_text()
        clock.jump()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reached = newest(tmp_path / "run")
    assert reached >= 10
    clock.run(words, tmp_path / "said")
    assert result_in(tmp_path / "run") == expected


@pytest.mark.slow
def test_an_index_is_the_same_whatever_the_clock_does(tmp_path: Path, clock: Clock) -> None:
    quiet = Quiet(tmp_path, 30)
    out = tmp_path / "again"
    clock.run(command_of(quiet, out, "--workers", "1"), tmp_path / "said")
    assert hashes(out) == quiet.reference
    shutil.rmtree(out)
