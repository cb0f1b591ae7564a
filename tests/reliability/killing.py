"""A real `polyseme prepare` to be killed, and the check that nothing torn is ever seen."""

import contextlib
import random
import shutil
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
from executors.jobs import hashes

from reliability.forked import Forked, polyseme

Driver = Forked
_MOST_RUNS = 5


def make_documents(path: Path, number: int, seed: int = 1) -> None:
    """One short document a line, some of them bad, so that there is a quarantine too."""
    choose = random.Random(seed)
    words = [f"word{i}" for i in range(3000)]
    with path.open("wb") as stream:
        for i in range(number):
            body = " ".join(choose.choices(words, k=50))
            bad = b"\xff" if i % 97 == 0 else b""
            stream.write(f"Document {i} is here. {body}.".encode() + bad + b"\n")


def prepare(source: Path, out: Path, *more: str, shard_bytes: int = 16_384) -> list[str]:
    """The words after `polyseme`; some sixty shards for 2,000 documents."""
    options = ["--language", "en", "--layout", "lines", "--shard-bytes", str(shard_bytes)]
    return ["prepare", str(source), "--out", str(out), *options, *more]


def wrong_files(out: Path, reference: dict[str, str]) -> list[str]:
    """Files under a final name that are not, byte for byte, those of the quiet run."""
    folders = [path for path in out.iterdir() if path.is_dir() and path.name != ".work"]
    return [
        f"{folder.name}/{name}"
        for folder in folders
        for name, found in hashes(folder).items()
        if reference.get(f"{folder.name}/{name}") != found
    ]


@contextlib.contextmanager
def started(words: Sequence[str], said: Path) -> Iterator[Driver]:
    """A running `polyseme`, ended with its children if it is still there at the end."""
    # What it says goes to a file: a pipe would make us wait for the orphans that hold it.
    with running(Forked(polyseme, *words, said=said)) as driver:
        yield driver


@contextlib.contextmanager
def running(process: Driver) -> Iterator[Driver]:
    """A process, ended with its children."""
    try:
        yield process
    finally:
        if process.poll() is None:
            for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        process.wait()


Blow = Callable[[Driver], bool]  # False if the work was done before there was anything to kill


class KilledRun:
    """Starts something again and again while blows fall on it, each at a later moment of the work.

    A blow is a function that is given the driver and kills something; `driver_dies` kills the
    driver itself, and the command is started again. Moments are measured in receipts, so that
    they are spread over the work on slow and fast machines.
    """

    def __init__(
        self, start: Callable[[Path], Driver], out: Path, reference: dict[str, str]
    ) -> None:
        self.start = start
        self.out = out
        self.reference = reference
        self.struck = 0
        self.wrong: list[str] = []

    def strike(self, blows: Sequence[Blow], seed: int) -> None:
        """Let all blows fall, then wait for the end."""
        choose = random.Random(seed)
        total = sum(name.startswith("receipts/") for name in self.reference)
        moments = sorted(choose.uniform(0.02, 0.75) * total for _ in blows)
        plan = deque(zip(moments, choose.sample(blows, len(blows)), strict=True))
        self._run_to_the_end(plan, choose)
        # The work can be over before a blow falls: then the rest fall on another run.
        for _ in range(_MOST_RUNS):
            if not plan:
                return
            assert hashes(self.out) == self.reference
            shutil.rmtree(self.out)
            self._run_to_the_end(plan, choose)
        assert not plan, f"in {_MOST_RUNS} runs, {len(plan)} of the blows found no work to fall on"

    def _run_to_the_end(self, plan: deque[tuple[float, Blow]], choose: random.Random) -> None:
        """Start the command as often as its driver is killed."""
        code: int | None = -signal.SIGKILL
        said = self.out.with_suffix(".said")
        while code == -signal.SIGKILL:
            with running(self.start(said)) as driver:
                self._strike_driver(driver, plan, choose)
                code = driver.wait()
        assert code == 0, said.read_text()

    def _strike_driver(
        self, driver: Driver, plan: deque[tuple[float, Blow]], choose: random.Random
    ) -> None:
        """Strike until the plan or the driver is at its end."""
        while plan and self._reached(plan[0][0], driver):
            time.sleep(choose.uniform(0, 0.15))
            blow = plan[0][1]
            if not blow(driver):
                return
            plan.popleft()
            self.struck += 1
            self.wrong += wrong_files(self.out, self.reference)
            if blow is driver_dies:
                return

    def _reached(self, moment: float, driver: Driver) -> bool:
        """Wait until so many receipts are there; False if the run ends before."""
        while driver.poll() is None:
            if len(list((self.out / "receipts").glob("*.json"))) >= moment:
                return True
            time.sleep(0.01)
        return False


def driver_dies(driver: Driver) -> bool:
    if driver.poll() is not None:
        return False
    driver.kill()
    return True


def local_worker_dies(driver: Driver) -> bool:
    """Kill one worker process of a driver, as soon as it has one."""
    return _one_dies([driver.pid], "spawn_main", driver)


def ray_worker_dies(raylets: list[int], driver: Driver) -> bool:
    """Kill one worker of these raylets, one that has a shard in hand."""
    return _one_dies(raylets, "ray::_commit", driver)


def _one_dies(parents: list[int], name: str, driver: Driver) -> bool:
    """Kill a child of these processes that is called so, as soon as there is one."""
    while driver.poll() is None:
        children = [child for parent in parents for child in _children(parent)]
        named = [child for child in children if name in " ".join(_words(child))]
        if named:
            with contextlib.suppress(psutil.NoSuchProcess):
                random.choice(named).kill()
                return True
        time.sleep(0.01)
    return False


def _children(parent: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(parent).children())
    except psutil.NoSuchProcess:
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
