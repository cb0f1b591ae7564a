"""`train`, `compare` and `push`, killed and on full disks: run again, they come out whole.

Compared are the bits of every task that came out, and all that is told of it but the time it took.
"""

import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from required import needs
from storage.hub_server import Hub, local_hub
from tasks.cases import make_task

from polyseme.storage.files import sha256_of
from polyseme.storage.hub import pull, push
from reliability.checkpoints import assert_only_whole
from reliability.forked import Forked, polyseme
from reliability.small_disk import resize

pytestmark = needs(hasattr(os, "fork"), "signals of a POSIX system")
EVERY = [pytest.param(20, marks=pytest.mark.slow)]
MODEL = "model.safetensors"
QUICK = ("--set", "training.epochs=4", "--set", "embeddings.model.cached=false")
Result = dict[str, Any]


@dataclass
class Command:
    """A command line that is killed now and then."""

    words: list[str]
    out: Path
    said: Path

    def start(self) -> Forked:
        return Forked(polyseme, *self.words, said=self.said)

    def finish(self) -> float:
        """To its end; the seconds it took."""
        begun = time.monotonic()
        assert self.start().wait() == 0, self.said.read_text()
        return time.monotonic() - begun

    def kill(self, times: int, whole: float, look: Callable[[], None]) -> None:
        """Kill it so often, and look at what it left; run again, it goes on."""
        choose = random.Random(7)
        for _ in range(times):
            process = self.start()
            code = process.wait(choose.uniform(0.1, 0.9) * whole)
            while code is not None:  # it had little left to do: begin again
                assert code == 0, self.said.read_text()
                shutil.rmtree(self.out)
                process = self.start()
                code = process.wait(choose.uniform(0.1, 0.6) * whole)
            process.kill()
            process.wait()
            look()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task(Path(tmp_path_factory.mktemp("task"))).task


def words_of(command: str, task: Path, out: Path) -> list[str]:
    """Two seeds, or two variants."""
    more = {"train": ("--seeds", "1,2"), "compare": ("--with", "static,frozen")}[command]
    return [command, str(task), "--out", str(out), *more, *QUICK]


@pytest.fixture(scope="module", params=["train", "compare"])
def quiet(
    request: pytest.FixtureRequest,
    task: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Result, float]:
    """A command, what it ends with that nothing disturbs, and the seconds it takes."""
    folder = Path(tmp_path_factory.mktemp("quiet"))
    words = words_of(request.param, task, folder / "out")
    seconds = Command(words, folder / "out", folder / "said").finish()
    return request.param, result_in(folder / "out"), seconds


def result_in(out: Path) -> Result:
    """The bits of every model, and all that is told but the time."""
    found: Result = {name: bits_of(out / name) for name in finished_tasks(out)}
    told = [*out.glob("metrics.json"), *out.glob("compare-*.json")]
    found |= {path.name: without_seconds(json.loads(path.read_text())) for path in told}
    assert len(told) == 1
    assert not list(out.rglob(".work"))
    assert not list(out.rglob("step-*"))
    return found


def without_seconds(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_seconds(value) for name, value in told.items() if name != "seconds"}
    return [without_seconds(value) for value in told] if isinstance(told, list) else told


def finished_tasks(out: Path) -> list[str]:
    """Folders that have a manifest, and so say that they hold a task."""
    found = [*out.glob("seed-*/manifest.json"), *out.glob("*/seed-*/manifest.json")]
    return sorted(str(path.parent.relative_to(out)) for path in found)


def bits_of(folder: Path) -> str:
    """Of a whole task: every file is what the manifest says."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    for name, described in files.items():
        assert sha256_of(folder / name) == described["sha256"], name
    return sha256_of(folder / MODEL)


def look_at(out: Path, expected: Result) -> None:
    """Whatever is there under a final name is whole, and as in the quiet run."""
    for name in finished_tasks(out):
        assert bits_of(out / name) == expected[name]
    for path in out.rglob("checkpoints"):
        assert_only_whole(path.parent)
    for path in [*out.glob("metrics.json"), *out.glob("compare-*.json")]:
        assert without_seconds(json.loads(path.read_text())) == expected[path.name]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [2, *EVERY])
def test_tasks_that_are_killed_while_they_are_trained_end_with_the_same_bits(
    tmp_path: Path, task: Path, quiet: tuple[str, Result, float], kills: int
) -> None:
    which, expected, seconds = quiet
    out = tmp_path / "out"
    command = Command(words_of(which, task, out), out, tmp_path / "said")
    written: dict[tuple[str, int], int] = {}

    def look() -> None:
        look_at(out, expected)
        for name in finished_tasks(out):  # what is finished is not trained again
            when = (out / name / MODEL).stat().st_mtime_ns
            assert written.setdefault((name, out.stat().st_ino), when) == when

    command.kill(kills, seconds, look)
    command.finish()
    look()
    assert result_in(out) == expected


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "kilobytes",
    [100, *(pytest.param(size, marks=pytest.mark.slow) for size in (4, 16, 32, 64, 150, 200, 300))],
)
def test_a_full_disk_is_told_and_training_goes_on_when_there_is_room(
    small_disk: Path, task: Path, quiet: tuple[str, Result, float], kilobytes: int
) -> None:
    name, expected, _ = quiet
    resize(small_disk, f"{kilobytes}k")
    out = small_disk / "out"
    with tempfile.TemporaryDirectory() as elsewhere:
        command = Command(words_of(name, task, out), out, Path(elsewhere) / "said")
        code = command.start().wait()
        said = " ".join(command.said.read_text().split())
        assert code == 74, said
        assert "No space left on device" in said
        assert "Traceback" not in said
        if out.exists():
            look_at(out, expected)
        resize(small_disk, "16m")
        command.finish()
    assert result_in(out) == expected


# --- push --------------------------------------------------------------------------------

NAME = "models/someone/tiny"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with local_hub() as found:
        yield found


@pytest.fixture(scope="module")
def model(task: Path) -> Path:
    return next(path.parent for path in (task.parent / "made").rglob(MODEL))


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [2, *EVERY])
def test_a_push_that_is_killed_has_uploaded_all_or_nothing(
    tmp_path: Path, hub: Hub, model: Path, kills: int
) -> None:
    before, choose = files_of(model), random.Random(3)

    def begin() -> Forked:
        return Forked(polyseme, "push", model, "someone/tiny", said=tmp_path / "said")

    push(model, "someone/tiny")
    requests, whole = len(hub.asked), hub.files(NAME)
    killed = 0
    while killed < kills:
        hub.repositories.clear()
        hub.objects.clear()
        hub.asked.clear()
        process, goal = begin(), choose.randrange(1, requests + 1)
        while len(hub.asked) < goal and process.poll() is None:
            time.sleep(0.001)
        time.sleep(choose.uniform(0, 0.01))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        assert hub.repositories.get(NAME, [{}]) in ([{}], [{}, whole])
        assert files_of(model) == before
    assert begin().wait() == 0
    assert hub.files(NAME) == whole
    pull("someone/tiny", tmp_path / "back")
    listed = json.loads((model / "manifest.json").read_text())["files"]
    assert set(files_of(tmp_path / "back")) == {*listed, "manifest.json"}


def test_a_pull_onto_a_full_disk_is_told_and_leaves_nothing(
    small_disk: Path, tmp_path: Path, hub: Hub, model: Path
) -> None:
    push(model, "someone/tiny")
    out = small_disk / "back"
    said = tmp_path / "said"
    assert Forked(polyseme, "pull", "someone/tiny", "--out", out, said=said).wait() == 74
    assert "No space left on device" in " ".join(said.read_text().split())
    assert "Traceback" not in said.read_text()
    assert list(small_disk.iterdir()) == []
    resize(small_disk, "8m")
    pull("someone/tiny", out)
    assert files_of(out)[MODEL] == hub.files(NAME)[MODEL]
