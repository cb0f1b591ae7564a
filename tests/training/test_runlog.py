"""The run log: exact, whole lines, cut where a run goes on.

Freed memory goes back to the system, as seen from outside.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reliability.victims import harm, make_victims, snapshot
from required import need, need_package

from polyseme.errors import StorageError
from polyseme.training.checkpoint import RunState
from polyseme.training.loop import train
from polyseme.training.runlog import RunLog
from training.toy import Toy, settings


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def write(folder: Path, *numbers: int) -> Path:
    log = RunLog(folder, RunState(step=10**6), tensorboard=False)
    for number in numbers:
        log.step(number, loss=1 / 3)
    log.close()
    return folder / "run.jsonl"


def test_a_loss_is_recorded_to_the_last_bit(tmp_path: Path) -> None:
    line = json.loads(write(tmp_path, 1).read_text())
    assert line["loss"] == 1 / 3


def test_lines_beyond_the_state_are_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 2, 3, 4)
    RunLog(tmp_path, RunState(step=2), tensorboard=False).close()
    assert steps(path) == [1, 2]


@pytest.mark.parametrize("torn", [b'{"step": 3, "lo', b"\0\0\0", b'{"step": 3}', b"[]\n"])
def test_a_torn_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    path = write(tmp_path, 1, 2)
    with path.open("ab") as stream:
        stream.write(torn)
    RunLog(tmp_path, RunState(step=5), tensorboard=False).close()
    assert steps(path) == [1, 2]
    assert steps(write(tmp_path, 3)) == [1, 2, 3]


@pytest.mark.parametrize("target", ["run.jsonl", "not-there", "sub", "itself"])
def test_a_link_in_its_place_is_replaced_by_a_new_log(tmp_path: Path, target: str) -> None:
    victims, out = make_victims(tmp_path / "victims"), tmp_path / "out"
    out.mkdir()
    path = out / "run.jsonl"
    path.symlink_to(path if target == "itself" else victims / target)
    before = snapshot(victims)
    assert steps(write(out, 1, 2)) == [1, 2]
    assert harm(before, snapshot(victims)) == []


def test_of_a_hard_link_a_copy_is_cut_and_written_to(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path = write(tmp_path, 1, 2, 3).rename(tmp_path / "other-name.jsonl")
    before = path.read_bytes()
    (tmp_path / "out" / "run.jsonl").hardlink_to(path)
    log = RunLog(tmp_path / "out", RunState(step=2), tensorboard=False)
    log.step(3, loss=0.5)
    log.close()
    assert steps(tmp_path / "out" / "run.jsonl") == [1, 2, 3]
    assert path.read_bytes() == before


def test_events_are_not_written_through_a_link(tmp_path: Path) -> None:
    need_package("tensorboard")
    victims, out = make_victims(tmp_path / "victims"), tmp_path / "out"
    out.mkdir()
    (out / "tensorboard").symlink_to(victims)
    before = snapshot(victims)
    with pytest.raises(StorageError, match="tensorboard is a link"):
        train(Toy(), settings(2, tensorboard=True), out)
    assert harm(before, snapshot(victims)) == []


def test_a_step_line_says_how_fast_and_how_far(tmp_path: Path) -> None:
    train(Toy(), settings(2), tmp_path)
    first, second, *_ = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    assert first["words_per_second"] > 0
    assert 0 < first["seconds"] <= second["seconds"]
    assert set(first["parts"]) == {"sum", "sign"}
    assert first["gradient_norm"] > 0
    assert first["learning_rate"] == 0.01


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    reading = need_package("tensorboard.backend.event_processing.event_accumulator")
    train(Toy(), settings(3, tensorboard=True), tmp_path)
    events = reading.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    drawn = [event.value for event in events.Scalars("training/loss")]
    assert drawn == pytest.approx([line["loss"] for line in lines if "loss" in line])
    assert len(events.Scalars("held_out/sum")) == 1


CODE = """
import sys
from pathlib import Path
from polyseme.processes import return_freed_memory

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

blocks = [bytes(1000) for _ in range(200_000)]
last = blocks.pop()  # keeps all below it from going back by itself
del blocks
before = megabytes()
if sys.argv[1] == "return":
    return_freed_memory()
print(before - megabytes())
"""


def returned(what: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", CODE, what], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_what_is_free_is_handed_back_and_otherwise_kept() -> None:
    need(sys.platform == "linux", "Linux with glibc", only_on="linux")
    assert returned("return") > 100
    assert returned("nothing") < 10


HELD = """
import sys
from pathlib import Path
from polyseme.processes import hold_little_memory

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

if sys.argv[1] == "hold":
    hold_little_memory()
import pyarrow as pa
for _ in range(2):
    bytes(30 << 20)  # when it is freed, glibc by its own rules keeps blocks of this size
blocks = [bytes(b"a" * (2 << 20)) for _ in range(50)]
last = bytes(b"a" * (1 << 19))
before = megabytes()
del blocks
print(before - megabytes(), pa.default_memory_pool().backend_name)
"""


def freed(what: str) -> tuple[int, str]:
    env = {**os.environ}
    env.pop("ARROW_DEFAULT_MEMORY_POOL", None)  # as a server in this process may have set it
    done = subprocess.run(
        [sys.executable, "-c", HELD, what], capture_output=True, text=True, check=True, env=env
    )
    megabytes, pool = done.stdout.split()
    return int(megabytes), pool


def test_a_process_that_holds_little_returns_large_blocks_at_once() -> None:
    need(sys.platform == "linux", "Linux with glibc", only_on="linux")
    megabytes, pool = freed("hold")
    assert megabytes == pytest.approx(100, abs=10)
    assert pool == "system"
    megabytes, pool = freed("nothing")
    assert megabytes < 20
    assert pool != "system"
